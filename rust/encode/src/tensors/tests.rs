use super::*;
use proptest::prelude::*;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn open(bytes: &[u8]) -> Result<Tensors> {
    let id = std::thread::current().id();
    let path = std::env::temp_dir().join(format!("ketrag-tensors-{}-{id:?}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let tensors = Tensors::open(&path);
    std::fs::remove_file(&path).unwrap();
    tensors
}

#[test]
fn the_three_types_are_read() {
    let header = r#"{"__metadata__":{"format":"pt"},
        "a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
        "b":{"dtype":"F16","shape":[5],"data_offsets":[16,26]},
        "c":{"dtype":"BF16","shape":[2],"data_offsets":[26,30]},
        "d":{"dtype":"I64","shape":[1],"data_offsets":[30,38]}}"#;
    let mut data: Vec<u8> = [1.0f32, -2.5, 3.0, f32::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
    data.extend([0x3c00u16, 0xc100, 0x0001, 0x7c00, 0x8000].iter().flat_map(|x| x.to_le_bytes()));
    data.extend([0x3f80u16, 0xc040].iter().flat_map(|x| x.to_le_bytes()));
    data.extend([0; 8]);
    let tensors = open(&file(header, &data)).unwrap();
    let mut row = [0.0; 2];
    tensors.get("a", &[2, 2]).unwrap().row(0, &mut row);
    assert_eq!(row, [1.0, -2.5]);
    let halves = tensors.get("b", &[5]).unwrap().to_vec();
    assert_eq!(halves, [1.0, -2.5, 2f32.powi(-24), f32::INFINITY, 0.0]);
    assert_eq!(tensors.finite("c", &[2]).unwrap().to_vec(), [1.0, -3.0]);
    for (name, shape) in [("a", vec![2, 2]), ("b", vec![5])] {
        assert!(matches!(tensors.finite(name, &shape), Err(Error::Damaged(_))), "{name} is not finite");
    }
    for (name, shape) in [("a", vec![4]), ("d", vec![1]), ("e", vec![1])] {
        assert!(matches!(tensors.get(name, &shape), Err(Error::Damaged(_))), "{name}");
    }
    assert!(tensors.has("c") && !tensors.has("e"));
}

#[test]
fn lying_headers_are_refused() {
    let one = |entry: &str| file(&format!("{{\"a\":{entry}}}"), &[0; 16]);
    let cases = [
        vec![],
        vec![1, 2, 3],
        u64::MAX.to_le_bytes().to_vec(),
        file("", &[]),
        file("[]", &[]),
        file("{\"a\":", &[]),
        file(&"[".repeat(100_000), &[]),
        one("1"),
        one(r#"{"dtype":"F32","shape":[4]}"#),
        one(r#"{"dtype":"F32","shape":[4],"data_offsets":[0,20]}"#),
        one(r#"{"dtype":"F32","shape":[4],"data_offsets":[16,0]}"#),
        one(r#"{"dtype":"F32","shape":[3],"data_offsets":[0,16]}"#),
        one(r#"{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}"#),
        one(r#"{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}"#),
        one(r#"{"dtype":"F32","shape":[4],"data_offsets":[18446744073709551600,18446744073709551615]}"#),
        file(
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#,
            &[0; 16],
        ),
    ];
    for bytes in cases {
        assert!(matches!(open(&bytes), Err(Error::Damaged(_) | Error::Io(_))), "{bytes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), small: bool) {
        if small && bytes.len() > 8 {
            bytes[1..8].fill(0);
        }
        if let Ok(tensors) = open(&bytes) {
            prop_assert!(tensors.get("a", &[1]).is_err());
        }
    }
}
