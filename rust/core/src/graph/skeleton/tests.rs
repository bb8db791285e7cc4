use super::*;

struct Told {
    chunk: u32,
    entities: Vec<(&'static str, &'static str, &'static str)>,
    relations: Vec<(&'static str, &'static str, &'static str, f64)>,
}

fn fold_of(told: &[Told], units: &[&[&str]], limit: usize, threads: usize) -> Result<Skeleton> {
    let ends = |lengths: Vec<usize>| {
        let mut sum = 0u64;
        std::iter::once(0)
            .chain(lengths.into_iter().map(move |n| {
                sum += n as u64;
                sum
            }))
            .collect::<Vec<u64>>()
    };
    let entities: Vec<_> = told.iter().flat_map(|t| &t.entities).collect();
    let relations: Vec<_> = told.iter().flat_map(|t| &t.relations).collect();
    let pack = |items: Vec<&str>| items.into_iter().collect::<StringsBuf>();
    let (names, types) =
        (pack(entities.iter().map(|e| e.0).collect()), pack(entities.iter().map(|e| e.1).collect()));
    let descriptions = pack(entities.iter().map(|e| e.2).collect());
    let (sources, targets) =
        (pack(relations.iter().map(|r| r.0).collect()), pack(relations.iter().map(|r| r.1).collect()));
    let relation_descriptions = pack(relations.iter().map(|r| r.2).collect());
    let strengths: Vec<f64> = relations.iter().map(|r| r.3).collect();
    let chunks: Vec<u32> = told.iter().map(|t| t.chunk).collect();
    let (entity_ends, relation_ends) = (
        ends(told.iter().map(|t| t.entities.len()).collect()),
        ends(told.iter().map(|t| t.relations.len()).collect()),
    );
    let texts: StringsBuf = units.iter().flat_map(|u| u.iter()).collect();
    let chunk_units = ends(units.iter().map(|u| u.len()).collect());
    let spans: Vec<u32> = (0..2 * texts.view().len() as u32).map(|i| 100 * (i / 2)).collect();
    let replies = Replies {
        chunks: &chunks,
        entities: &entity_ends,
        names: names.view(),
        types: types.view(),
        descriptions: descriptions.view(),
        relations: &relation_ends,
        sources: sources.view(),
        targets: targets.view(),
        relation_descriptions: relation_descriptions.view(),
        strengths: &strengths,
    };
    let units = ChunkUnits { units: &chunk_units, texts: texts.view(), spans: &spans };
    let options = Options { description_tokens: limit, encoding: Encoding::Cl100k };
    fold(&replies, &units, options, threads, &Progress::none())
}

fn told() -> Vec<Told> {
    vec![
        Told {
            chunk: 1,
            entities: vec![
                (" Nansen ", "", "explorer"),
                ("nansen", "person", "explorer\nscientist"),
                ("", "x", "y"),
            ],
            relations: vec![
                ("Nansen", "Fram", "sailed the Fram", 2.0),
                ("fram", "NANSEN", "sailed the Fram", f64::NAN),
                ("Fram", "fram", "itself", 1.0),
                ("Fram", " ", "nothing", 1.0),
            ],
        },
        Told {
            chunk: 2,
            entities: vec![("FRAM", "ship", "a ship"), ("Nansen", "geo", "scientist")],
            relations: vec![("Nansen", "Oslo", "lived in Oslo", 1.5)],
        },
    ]
}

const UNITS: [&[&str]; 3] = [&["nothing"], &["Nansen went.", "The Fram and Nansen"], &["Oslo", "ship"]];

fn list(strings: &StringsBuf) -> Vec<String> {
    strings.view().iter().map(str::to_owned).collect()
}

fn rows(csr: &Csr) -> Vec<Vec<u32>> {
    (0..csr.view().rows()).map(|r| csr.view().row(r).to_vec()).collect()
}

#[test]
fn replies_are_merged_within_and_across_chunks() {
    let s = fold_of(&told(), &UNITS, 500, 1).unwrap();
    assert_eq!(list(&s.names), ["NANSEN", "FRAM", "OSLO"]);
    assert_eq!(list(&s.types), ["PERSON", "SHIP", ""]);
    // Found in two chunks, then in one; byte order decides between equals.
    assert_eq!(list(&s.descriptions), ["scientist\nexplorer", "a ship", ""]);
    assert_eq!((s.sources, s.targets), (vec![0, 0], vec![1, 2]));
    assert_eq!(s.weights, [3.0, 1.5]);
    assert_eq!((s.ranks, s.relation_ranks), (vec![2, 1, 1], vec![3, 3]));
    assert_eq!(rows(&s.chunks), [vec![1, 2], vec![1, 2], vec![2]]);
    assert_eq!(rows(&s.units), [vec![1, 2, 3, 4], vec![1, 2, 3, 4], vec![3, 4]]);
    assert_eq!(rows(&s.relation_units), [vec![1, 2], vec![3, 4]]);
    assert_eq!((s.nameless, s.endless, s.loops), (1, 1, 1));
    let places: Vec<_> = s.mentions.iter().map(|m| (m.entity, m.unit, m.start, m.end)).collect();
    assert_eq!(places, [(0, 1, 100, 106), (0, 2, 213, 219), (1, 2, 204, 208), (2, 3, 300, 304)]);
    let count = |row: &str| Encoding::Cl100k.count(row) as u32;
    assert_eq!(s.row_tokens[1], count("1|FRAM|a ship|1\n"));
    assert_eq!(s.relation_row_tokens[0], count("0|NANSEN|FRAM|sailed the Fram|3.0|3|"));
}

#[test]
fn descriptions_end_at_the_limit() {
    let limited = |n| list(&fold_of(&told(), &UNITS, n, 1).unwrap().descriptions)[0].clone();
    let cost = |line: &str| Encoding::Cl100k.count(line) + 1;
    let both = cost("scientist") + cost("explorer");
    assert_eq!(limited(both - 1), "scientist");
    assert_eq!(limited(both), "scientist\nexplorer");
    assert!("scientist".starts_with(&limited(1)) && limited(0).is_empty());
}

#[test]
fn nothing_and_nonsense() {
    let empty = fold_of(&[], &[], 500, 2).unwrap();
    assert_eq!((empty.ranks.len(), empty.chunks.view().rows()), (0, 0));
    let late = || Told { chunk: 9, entities: vec![], relations: vec![] };
    assert!(fold_of(&[late()], &UNITS, 500, 1).is_err());
    assert!(fold_of(&[late(), late()], &[&[][..]; 10], 500, 1).is_err());
}

#[test]
fn threads_change_nothing() {
    let one = fold_of(&told(), &UNITS, 500, 1).unwrap();
    assert_eq!(one, fold_of(&told(), &UNITS, 500, 5).unwrap());
}
