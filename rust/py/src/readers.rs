//! Readers of documents: the layout of PDF pages, web pages, JSON lines, and text that is not UTF-8.
//!
//! PDFium is loaded by pypdfium2, which passes the addresses of its functions: calling them from Python takes longer
//! than what they do. The interpreter is held during these calls, because PDFium must not be used by two threads.

use crate::arrays::{strings_out, StringsOut};
use crate::door::{long, quick, to_python, wrong, Report};
use ketrag_base::error::{caught, Result};
use ketrag_layout::characters::Characters;
use ketrag_layout::lines::{lines_of, PlacedText};
use ketrag_layout::packed::{pack, unpack};
use ketrag_layout::page::{split_words, Page, State, Word};
use ketrag_layout::paragraphs::Compounds;
use ketrag_layout::paragraphs_of_pages;
use ketrag_layout::unmapped::tex_character;
use ketrag_text::encodings::decode;
use ketrag_text::json_lines::{hash_of, is_plain, read_lines};
use ketrag_text::strings::StringsBuf;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList, PyString};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of characters of a page.
const MOST_UNITS: i32 = 2_000_000;
/// A page with more objects than this is not searched for rules.
const MOST_OBJECTS: i32 = 5000;
/// How many objects of a page without text are searched for a picture.
const MOST_SEARCHED: i32 = 1000;
const TEXT: i32 = 1;
const PATH: i32 = 2;
const IMAGE: i32 = 3;
const FORM: i32 = 5;
/// The mode of text that is not drawn: recognised text behind a picture.
const INVISIBLE: i32 = 3;

type Handle = *mut c_void;

/// The functions of PDFium that are called, by their names in `fpdf_text.h` and `fpdf_edit.h`.
#[derive(Clone, Copy)]
struct Functions {
    count_chars: extern "system" fn(Handle) -> i32,
    get_text: extern "system" fn(Handle, i32, i32, *mut u16) -> i32,
    get_unicode: extern "system" fn(Handle, i32) -> u32,
    get_loose_box: extern "system" fn(Handle, i32, *mut f32) -> i32,
    get_matrix: extern "system" fn(Handle, i32, *mut f32) -> i32,
    get_font_size: extern "system" fn(Handle, i32) -> f64,
    get_angle: extern "system" fn(Handle, i32) -> f32,
    has_map_error: extern "system" fn(Handle, i32) -> i32,
    count_objects: extern "system" fn(Handle) -> i32,
    get_object: extern "system" fn(Handle, i32) -> Handle,
    get_type: extern "system" fn(Handle) -> i32,
    get_bounds: extern "system" fn(Handle, *mut f32, *mut f32, *mut f32, *mut f32) -> i32,
    get_colour: extern "system" fn(Handle, i32, *mut u32, *mut u32, *mut u32, *mut u32) -> i32,
    get_origin: extern "system" fn(Handle, i32, *mut f64, *mut f64) -> i32,
    get_text_object: extern "system" fn(Handle, i32) -> Handle,
    get_render_mode: extern "system" fn(Handle) -> i32,
}

const COUNT: usize = 16;
const NAMES: [&str; COUNT] = [
    "FPDFText_CountChars", "FPDFText_GetText", "FPDFText_GetUnicode", "FPDFText_GetLooseCharBox",
    "FPDFText_GetMatrix", "FPDFText_GetFontSize", "FPDFText_GetCharAngle", "FPDFText_HasUnicodeMapError",
    "FPDFPage_CountObjects", "FPDFPage_GetObject", "FPDFPageObj_GetType", "FPDFPageObj_GetBounds",
    "FPDFText_GetFillColor", "FPDFText_GetCharOrigin", "FPDFText_GetTextObject",
    "FPDFTextObj_GetTextRenderMode",
];

impl Functions {
    /// Return the functions at the addresses of [`NAMES`], or None if one is missing.
    fn new(addresses: [usize; COUNT]) -> Option<Functions> {
        if addresses.contains(&0) {
            return None;
        }
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = addresses;
        // SAFETY: the reader passes the addresses of exactly these functions of the loaded PDFium, whose headers declare
        // these types; the library stays loaded, because pypdfium2 holds it. Function pointers are as wide as usize.
        Some(unsafe {
            Functions {
                count_chars: std::mem::transmute::<usize, extern "system" fn(Handle) -> i32>(a),
                get_text: std::mem::transmute::<usize, extern "system" fn(Handle, i32, i32, *mut u16) -> i32>(
                    b,
                ),
                get_unicode: std::mem::transmute::<usize, extern "system" fn(Handle, i32) -> u32>(c),
                get_loose_box: std::mem::transmute::<usize, extern "system" fn(Handle, i32, *mut f32) -> i32>(
                    d,
                ),
                get_matrix: std::mem::transmute::<usize, extern "system" fn(Handle, i32, *mut f32) -> i32>(e),
                get_font_size: std::mem::transmute::<usize, extern "system" fn(Handle, i32) -> f64>(f),
                get_angle: std::mem::transmute::<usize, extern "system" fn(Handle, i32) -> f32>(g),
                has_map_error: std::mem::transmute::<usize, extern "system" fn(Handle, i32) -> i32>(h),
                count_objects: std::mem::transmute::<usize, extern "system" fn(Handle) -> i32>(i),
                get_object: std::mem::transmute::<usize, extern "system" fn(Handle, i32) -> Handle>(j),
                get_type: std::mem::transmute::<usize, extern "system" fn(Handle) -> i32>(k),
                get_bounds: std::mem::transmute::<
                    usize,
                    extern "system" fn(Handle, *mut f32, *mut f32, *mut f32, *mut f32) -> i32,
                >(l),
                get_colour: std::mem::transmute::<
                    usize,
                    extern "system" fn(Handle, i32, *mut u32, *mut u32, *mut u32, *mut u32) -> i32,
                >(m),
                get_origin: std::mem::transmute::<
                    usize,
                    extern "system" fn(Handle, i32, *mut f64, *mut f64) -> i32,
                >(n),
                get_text_object: std::mem::transmute::<usize, extern "system" fn(Handle, i32) -> Handle>(o),
                get_render_mode: std::mem::transmute::<usize, extern "system" fn(Handle) -> i32>(p),
            }
        })
    }
}

/// An open page of PDFium with its text.
struct OpenPage<'a> {
    functions: &'a Functions,
    page: Handle,
    text: Handle,
    units: Vec<u32>,
}

impl OpenPage<'_> {
    fn new(functions: &Functions, page: usize, text: usize) -> OpenPage<'_> {
        let mut found = OpenPage { functions, page: page as Handle, text: text as Handle, units: Vec::new() };
        found.units = found.read_units();
        found.replace_ligatures();
        found
    }

    /// Return one code unit for each character that PDFium counts.
    fn read_units(&self) -> Vec<u32> {
        let count = (self.functions.count_chars)(self.text).clamp(0, MOST_UNITS);
        let mut buffer = vec![0_u16; count as usize + 1];
        let got = (self.functions.get_text)(self.text, 0, count, buffer.as_mut_ptr());
        if got - 1 != count {
            // It leaves out characters without a Unicode value.
            return (0..count).map(|at| (self.functions.get_unicode)(self.text, at).min(0x10_ffff)).collect();
        }
        buffer.truncate(count as usize);
        buffer.into_iter().map(u32::from).collect()
    }

    /// Replace the ligatures of TeX's encodings in fonts without a map to Unicode.
    fn replace_ligatures(&mut self) {
        for at in 0..self.units.len() {
            if let Some(character) = tex_character(self.units[at]) {
                if self.is_unmapped(at) {
                    self.units[at] = character;
                }
            }
        }
    }

    fn objects(&self, most: i32) -> impl Iterator<Item = Handle> + '_ {
        let count = (self.functions.count_objects)(self.page).clamp(0, most);
        (0..count).map(|at| (self.functions.get_object)(self.page, at)).filter(|object| !object.is_null())
    }
}

impl OpenPage<'_> {
    /// Return left, top, right, bottom of the objects of a page whose kind passes.
    fn bounds_of(&self, passes: impl Fn(i32) -> bool) -> Vec<[f32; 4]> {
        if (self.functions.count_objects)(self.page) > MOST_OBJECTS {
            return Vec::new();
        }
        let bounds = |object: Handle| {
            let [mut left, mut bottom, mut right, mut top] = [0.0; 4];
            let is_known = (self.functions.get_bounds)(
                object, &raw mut left, &raw mut bottom, &raw mut right, &raw mut top,
            );
            (is_known != 0).then_some([left, top, right, bottom])
        };
        let is_wanted = |object: &Handle| passes((self.functions.get_type)(*object));
        self.objects(MOST_OBJECTS).filter(is_wanted).filter_map(bounds).collect()
    }
}

impl Characters for OpenPage<'_> {
    fn units(&self) -> &[u32] {
        &self.units
    }

    fn bounds(&self, at: usize) -> [f32; 4] {
        let mut found = [0.0; 4];
        (self.functions.get_loose_box)(self.text, at as i32, found.as_mut_ptr());
        found
    }

    fn matrix(&self, at: usize) -> [f32; 6] {
        let mut found = [0.0; 6];
        (self.functions.get_matrix)(self.text, at as i32, found.as_mut_ptr());
        found
    }

    fn font_size(&self, at: usize) -> f64 {
        (self.functions.get_font_size)(self.text, at as i32)
    }

    fn origin(&self, at: usize) -> [f64; 2] {
        let [mut x, mut y] = [0.0; 2];
        (self.functions.get_origin)(self.text, at as i32, &raw mut x, &raw mut y);
        [x, y]
    }

    fn angle(&self, at: usize) -> f32 {
        (self.functions.get_angle)(self.text, at as i32)
    }

    fn is_unmapped(&self, at: usize) -> bool {
        (self.functions.has_map_error)(self.text, at as i32) == 1
    }

    fn paths(&self) -> Vec<[f32; 4]> {
        if (self.functions.count_objects)(self.page) < 5 {
            return Vec::new();
        }
        self.bounds_of(|kind| kind == PATH)
    }

    fn backgrounds(&self) -> Vec<[f32; 4]> {
        if (self.functions.count_objects)(self.page) > MOST_OBJECTS {
            return vec![[f32::MIN, f32::MAX, f32::MAX, f32::MIN]]; // not searched: all text counts as seen
        }
        self.bounds_of(|kind| kind != TEXT)
    }

    fn is_white(&self, at: usize) -> bool {
        let [mut red, mut green, mut blue, mut alpha] = [0; 4];
        let is_known = (self.functions.get_colour)(
            self.text, at as i32, &raw mut red, &raw mut green, &raw mut blue, &raw mut alpha,
        );
        let is_white = is_known != 0 && (alpha == 0 || red.min(green).min(blue) >= 250);
        is_white || {
            let object = (self.functions.get_text_object)(self.text, at as i32);
            !object.is_null() && (self.functions.get_render_mode)(object) == INVISIBLE
        }
    }

    fn has_picture(&self) -> bool {
        self.objects(MOST_SEARCHED).any(|object| matches!((self.functions.get_type)(object), IMAGE | FORM))
    }
}

type Bounds = (f64, f64, f64, f64);
type RecognisedLine = (f64, Vec<(f64, f64, f64, f64, String)>);
type ParagraphFields = (String, f64, Bounds, Bounds, usize, usize, bool, bool);

/// The pages of a document, read one after the other.
#[pyclass(frozen, module = "ketrag_fast._core")]
pub struct PdfPages {
    functions: Functions,
    pages: Mutex<Vec<Page>>,
    compounds: Mutex<Compounds>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name_state(page: &Page) -> &'static str {
    match page.state {
        State::Text => "",
        State::Unmapped => "unmapped",
        State::Scanned => "scanned",
    }
}

#[pymethods]
impl PdfPages {
    #[new]
    fn new(functions: [usize; COUNT]) -> PyResult<PdfPages> {
        let functions = Functions::new(functions).ok_or_else(|| wrong("a function of PDFium is missing"))?;
        Ok(PdfPages { functions, pages: Mutex::default(), compounds: Mutex::default() })
    }

    /// Return the names of the functions of PDFium whose addresses a new object needs.
    #[staticmethod]
    fn functions() -> [&'static str; COUNT] {
        NAMES
    }

    /// Add an open page of PDFium and return its state. `page` and `text_page` are its handles, which stay open during
    /// the call. `texts` are added to the page: left, top, right and bottom in coordinates of the file, and the text.
    fn add(
        &self,
        page: usize,
        text_page: usize,
        width: f64,
        height: f64,
        rotation: u16,
        texts: Vec<PlacedText>,
    ) -> PyResult<&'static str> {
        if page == 0 || text_page == 0 {
            return Err(wrong("the page is closed"));
        }
        let read = || {
            let open = OpenPage::new(&self.functions, page, text_page);
            Ok(lines_of(&open, width, height, rotation, &texts))
        };
        let page = caught(read).map_err(to_python)?;
        let state = name_state(&page);
        lock(&self.pages).push(page);
        Ok(state)
    }

    /// Add a page with recognised text: for each line the size of its letters and its words (left, top, right,
    /// bottom, text).
    fn add_recognised(&self, width: f64, height: f64, lines: Vec<RecognisedLine>) {
        let mut page = Page { width, height, ..Page::default() };
        for (size, words) in lines {
            let word = |(left, top, right, bottom, text)| Word { left, top, right, bottom, text };
            let words: Vec<Word> = words.into_iter().map(word).collect();
            split_words(words, false, size, &mut page.lines);
        }
        page.lines.iter_mut().for_each(ketrag_layout::page::Line::clamp);
        if page.lines.is_empty() {
            page.state = State::Scanned;
        }
        lock(&self.pages).push(page);
    }

    /// Remove the last page.
    fn pop(&self) {
        lock(&self.pages).pop();
    }

    /// Return all pages as bytes.
    fn pack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let packed = quick(py, || Ok(pack(&lock(&self.pages))))?;
        Ok(PyBytes::new(py, &packed))
    }

    /// Add the pages that `pack` has returned.
    fn unpack(&self, py: Python<'_>, packed: &[u8]) -> PyResult<()> {
        quick(py, || {
            lock(&self.pages).extend(unpack(packed)?);
            Ok(())
        })
    }

    fn __len__(&self) -> usize {
        lock(&self.pages).len()
    }

    /// Return for each page why it has no text: "unmapped" (its fonts have no Unicode values), "scanned" or "".
    fn states(&self) -> Vec<&'static str> {
        lock(&self.pages).iter().map(name_state).collect()
    }

    /// Return for each page how many words nobody sees: white ones, tiny ones, and those outside of the page.
    fn unseen(&self) -> Vec<u32> {
        lock(&self.pages).iter().map(|page| page.unseen).collect()
    }

    /// Return the height of each page, turned as its text.
    fn heights(&self) -> Vec<f64> {
        lock(&self.pages).iter().map(|page| page.height).collect()
    }

    /// Return the paragraphs of each page in reading order: text, size, box, box on the displayed page, column, rows,
    /// open, soft. Running heads and page numbers are removed. The lines of the pages are used up.
    #[pyo3(signature = (*, report=None))]
    fn paragraphs(&self, py: Python<'_>, report: Report<'_, '_>) -> PyResult<Vec<Vec<ParagraphFields>>> {
        long(py, report, |progress| {
            let mut pages = lock(&self.pages);
            let (found, compounds) = paragraphs_of_pages(&mut pages, progress)?;
            *lock(&self.compounds) = compounds;
            let fields = pages.iter().zip(found).map(|(page, paragraphs)| {
                let fields = paragraphs.into_iter().map(|own| {
                    let shown = page.displayed(own.bounds);
                    (
                        own.text,
                        own.size,
                        own.bounds.into(),
                        shown.into(),
                        own.column,
                        own.rows,
                        own.open,
                        own.soft,
                    )
                });
                fields.collect()
            });
            Ok(fields.collect())
        })
    }

    /// Return two lines as one; a hyphen between them stays only if the document has the word with a hyphen.
    fn join(&self, py: Python<'_>, text: &str, more: &str, soft: bool) -> PyResult<String> {
        quick(py, || -> Result<String> {
            let mut text = text.to_string();
            lock(&self.compounds).join(&mut text, more, soft);
            Ok(text)
        })
    }
}

type Heading = (usize, u8, String);
type WebPage = (String, Vec<Heading>, Vec<(usize, usize)>, Vec<String>, String);

/// Return the text of a serialised body, its headings (offset in characters, level, text), its listings (start and end), the
/// targets of its links, and the heading before the text.
#[pyfunction]
#[pyo3(signature = (markup, *, whole = false))]
pub fn web_page(py: Python<'_>, markup: &str, whole: bool) -> PyResult<WebPage> {
    quick(py, || {
        let page = ketrag_web::read(markup, whole);
        Ok((page.text.text, page.text.headings, page.text.code, page.links, page.banner))
    })
}

/// Return what is written for a superscript after the text `before`; `is_note`: it is the mark of a note.
#[pyfunction]
#[pyo3(signature = (before, text, *, is_note = false))]
pub fn raised_text(before: &str, text: &str, is_note: bool) -> String {
    ketrag_text::raised::raised(before, text, is_note)
}

/// Return what is written for a subscript after the text `before`.
#[pyfunction]
pub fn lowered_text(before: &str, text: &str) -> String {
    ketrag_text::raised::lowered(before, text)
}

/// Return a part of a formula with its own parts: a fraction, a root, a power, an index or a row.
#[pyfunction]
pub fn formula_part(kind: &str, texts: Vec<String>) -> String {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    ketrag_text::formulas::part(kind, &texts)
}

/// Return a formula without invisible operators, with blanks around its relations.
#[pyfunction]
pub fn formula_text(formula: &str) -> String {
    ketrag_text::formulas::spaced(formula)
}

/// Return the markup of a page without the attributes and options for which its parser takes quadratic time.
#[pyfunction]
pub fn limit_markup(py: Python<'_>, markup: &str) -> PyResult<String> {
    quick(py, || Ok(ketrag_web::limit_markup(markup).into_owned()))
}

type Decoded<'py> = (Bound<'py, PyString>, Option<String>, bool, bool);

/// Return the text of bytes without a byte order mark, its encoding (None for UTF-8), whether it is sure, and whether it is the
/// declared one.
#[pyfunction]
#[pyo3(signature = (data, declared = None))]
pub fn decode_text<'py>(py: Python<'py>, data: &[u8], declared: Option<&str>) -> PyResult<Decoded<'py>> {
    let found = quick(py, || Ok(decode(data, declared)))?;
    // The text of a large file may find no memory: that is an error here, while conversions panic.
    let text = PyString::from_bytes(py, found.text.as_bytes())?;
    Ok((text, found.encoding, found.is_sure, found.is_declared))
}

type Texts<'py> = (Bound<'py, PyList>, StringsOut);
/// Number of documents before the line, its number, its bytes, and whether it certainly is not JSON.
type Left<'py> = (usize, usize, Bound<'py, PyBytes>, bool);
type Read<'py> = (Texts<'py>, Texts<'py>, Texts<'py>, Bound<'py, PyList>, Vec<Left<'py>>, usize);

fn texts_out<'py>(py: Python<'py>, texts: StringsBuf) -> PyResult<Texts<'py>> {
    let view = texts.view();
    let list = PyList::new(py, (0..view.len()).map(|i| view.get(i)))?;
    Ok((list, strings_out(texts)))
}

/// Read whole lines of a file: return ids, titles and texts (as a list and packed), hashes, the lines that are left to the
/// caller, and the number of lines. A document without an id is `name:line`.
#[pyfunction]
pub fn read_json_lines<'py>(py: Python<'py>, block: &[u8], name: &str, first: usize) -> PyResult<Read<'py>> {
    let found = quick(py, || Ok(read_lines(block, |line| format!("{name}:{}", first + line))))?;
    let left = found
        .left
        .iter()
        .map(|left| {
            (left.before, first + left.line, PyBytes::new(py, &block[left.start..left.end]), left.is_bad)
        })
        .collect();
    let hashes = PyList::new(py, found.hashes.iter().map(|hash| PyBytes::new(py, hash)))?;
    let (ids, titles) = (texts_out(py, found.ids)?, texts_out(py, found.titles)?);
    Ok((ids, titles, texts_out(py, found.texts)?, hashes, left, found.lines))
}

type Columns = (StringsOut, StringsOut, StringsOut, StringsOut);

/// Return the ids, titles, texts and metadata of documents, packed, and their hashes; None if one of them must be changed before
/// it is stored. `locators` has "" for a document without any.
#[pyfunction]
pub fn pack_documents<'py>(
    py: Python<'py>,
    ids: Vec<PyBackedStr>,
    titles: Vec<PyBackedStr>,
    texts: Vec<PyBackedStr>,
    metadata: Vec<PyBackedStr>,
    locators: Vec<PyBackedStr>,
) -> PyResult<Option<(Columns, Bound<'py, PyList>)>> {
    let count = ids.len();
    if [&titles, &texts, &metadata, &locators].iter().any(|column| column.len() != count) {
        return Err(wrong("the columns of documents must have equal length"));
    }
    if !(0..count).all(|i| is_plain(&ids[i], &titles[i], &texts[i])) {
        return Ok(None);
    }
    let hashes = (0..count).map(|i| {
        let parts = [&ids[i], &titles[i], &texts[i], &metadata[i], &locators[i]].map(|part| part.as_bytes());
        PyBytes::new(py, &hash_of(parts[..if parts[4].is_empty() { 4 } else { 5 }].iter().copied()))
    });
    let hashes = PyList::new(py, hashes.collect::<Vec<_>>())?;
    let [ids, titles, texts, metadata] = [ids, titles, texts, metadata].map(|column| {
        let mut packed = StringsBuf::default();
        column.iter().for_each(|text| packed.push(text));
        strings_out(packed)
    });
    Ok(Some(((ids, titles, texts, metadata), hashes)))
}
