//! Arrays that exist only in memory, in the form in which a generation's arrays are read.

use crate::error::Result;
use crate::generation::Held;
use crate::store::{Compose, Item, MappedArray, Shape};
use std::sync::Arc;

struct Memory<T> {
    name: &'static str,
    values: Vec<T>,
    columns: Option<usize>,
}

impl<T: Item + Send + Sync> Compose for Memory<T> {
    fn name(&self) -> &str {
        self.name
    }

    fn shape(&self) -> Shape {
        let rows = self.values.len() / self.columns.unwrap_or(1).max(1);
        Shape { kind: T::KIND, rows, columns: self.columns }
    }

    fn fill(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.values);
        out.copy_from_slice(&bytes[offset..offset + out.len()]);
        Ok(())
    }
}

/// The arrays of a collection, by name.
#[derive(Default)]
pub struct Stored(Vec<(String, Held)>);

impl Stored {
    /// Add an array of one dimension.
    pub fn add<T: Item + Send + Sync>(&mut self, name: &'static str, values: Vec<T>) -> Result<()> {
        self.push(Memory { name, values, columns: None })
    }

    /// Add rows of `columns` values.
    pub fn add_rows<T: Item + Send + Sync>(
        &mut self,
        name: &'static str,
        values: Vec<T>,
        columns: usize,
    ) -> Result<()> {
        self.push(Memory { name, values, columns: Some(columns) })
    }

    fn push<T: Item + Send + Sync>(&mut self, array: Memory<T>) -> Result<()> {
        let name = array.name.to_owned();
        self.0.push((name, Held::Array(Arc::new(MappedArray::composed(Box::new(array))?))));
        Ok(())
    }

    pub fn into_arrays(self) -> Vec<(String, Held)> {
        self.0
    }
}
