use super::*;

#[test]
fn batches_hold_whole_windows() {
    let ids = vec![0u32; 600];
    let piece = |n: usize| Piece { ids: &ids[..n], weight: 1, prompt: 0 };
    let starts = |lengths: &[usize]| batches(&lengths.iter().map(|&n| piece(n)).collect::<Vec<_>>(), BATCH);
    assert_eq!(starts(&[]), [0]);
    assert_eq!(starts(&[600]), [0, 1]);
    assert_eq!(starts(&[100, 156, 1]), [0, 2, 3]);
    assert_eq!(starts(&[600, 1, 1, 600]), [0, 1, 3, 4]);
}

#[test]
fn names_of_precisions() {
    assert_eq!(Precision::named("bf16"), Ok(Precision::Bf16));
    assert!(Precision::named("int8").is_err());
}
