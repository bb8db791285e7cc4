//! Buffers of one thread that are reused between queries.

use std::any::Any;

/// One buffer per type. There are only a few types, so lookup is linear.
#[derive(Debug, Default)]
pub struct Scratch(Vec<Box<dyn Any + Send>>);

impl Scratch {
    pub fn of<T: Any + Send + Default>(&mut self) -> &mut T {
        let at = match self.0.iter().position(|kept| kept.is::<T>()) {
            Some(at) => at,
            None => {
                self.0.push(Box::<T>::default());
                self.0.len() - 1
            }
        };
        self.0[at].downcast_mut().expect("the type was compared")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_a_buffer_that_stays() {
        let mut scratch = Scratch::default();
        scratch.of::<Vec<u8>>().push(7);
        scratch.of::<Vec<u32>>().extend([1, 2]);
        assert_eq!((scratch.of::<Vec<u8>>().len(), scratch.of::<Vec<u32>>().len()), (1, 2));
    }
}
