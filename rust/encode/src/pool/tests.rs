use super::*;

#[test]
fn every_pooling() {
    // Three tokens of two values, padded to four.
    let rows = [1.0, 2.0, 0.0, 0.0, 3.0, -2.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0];
    let get = |mode, pool_prompt, prompt| {
        Head::open(&[mode], pool_prompt, &[], 2).unwrap().run(&rows, 4, 2, prompt)
    };
    let root = |x: f64| (x / 3f64.sqrt()) as f32;
    assert_eq!(get(Pooling::Cls, true, 1), [1.0, 2.0]);
    assert_eq!(get(Pooling::Max, true, 1), [5.0, 6.0]);
    assert_eq!(get(Pooling::Mean, true, 1), [3.0, 2.0]);
    assert_eq!(get(Pooling::MeanSqrt, true, 1), [root(9.0), root(6.0)]);
    assert_eq!(get(Pooling::Weighted, true, 1), [22.0 / 6.0, 16.0 / 6.0]);
    assert_eq!(get(Pooling::Last, true, 1), [5.0, 6.0]);
    // Without the prompt's token; the first token stays the first, and one token is always left.
    assert_eq!(get(Pooling::Mean, false, 1), [4.0, 2.0]);
    assert_eq!(get(Pooling::Weighted, false, 1), [21.0 / 5.0, 14.0 / 5.0]);
    assert_eq!(get(Pooling::Cls, false, 1), [3.0, -2.0]);
    assert_eq!(get(Pooling::Max, false, 9), [5.0, 6.0]);
    let both = Head::open(&[Pooling::Cls, Pooling::Mean], true, &[Step::Normalise], 2).unwrap();
    assert_eq!(both.dimension(), 4);
    let vector = both.run(&rows, 4, 2, 0);
    let length: f32 = vector.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-6);
}

#[test]
fn no_vector_is_divided_by_nothing() {
    let mut zero = [0.0f32; 3];
    normalise(&mut zero);
    assert_eq!(zero, [0.0; 3]);
    let mut vector = [3.0f32, 4.0];
    normalise(&mut vector);
    assert_eq!(vector, [0.6, 0.8]);
}
