//! The Python bindings, the only crate that uses PyO3. Every function copies as little as possible, checks
//! its arrays, and calls the core through [`door`].
//!
//! A call from Python passes through these steps:
//!
//! 1. The function of a module here checks the types of its buffers and borrows them ([`arrays`]).
//! 2. [`door`] allocates the memory reserve, releases the interpreter, and for long work watches for signals
//!    on the calling thread while another one works.
//! 3. The kernel of another crate checks the values and computes.
//! 4. [`door`] turns an error into an exception of `ketrag_fast.errors`, and a panic into `InternalError`. It relies
//!    on unwinding: `panic = "abort"` is not supported (see `ketrag_base`).
//! 5. The result becomes NumPy arrays without a copy, or plain values where callers work without NumPy.
//!
//! The module is tested from Python: `tests/unit/kernels` and `tests/parity`.

// Python passes arrays and settings one by one.
#![allow(clippy::too_many_arguments)]

mod arrays;
mod column;
mod context_json;
mod documents;
mod door;
mod encode;
mod extensions;
mod files;
mod front;
mod graphs;
mod lock;
#[cfg(feature = "papers")]
mod papers;
mod readers;
mod request;
mod searcher;
mod shards;
mod strings;
mod text;
mod units;
mod vectors;
mod walk;

use ketrag_base::reserve::again;
use pyo3::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};

// Classes are frozen and `Sync`, and nothing global changes, so the module is safe without the GIL.
#[pymodule(gil_used = false)]
pub mod _core {
    #[pymodule_export]
    use super::column::Column;
    #[pymodule_export]
    use super::documents::PyDocuments;
    #[pymodule_export]
    use super::encode::{
        encoder_kernels, encoder_refusal, term_encoder_fingerprint, Classifier, Encoder, Extractor,
        TermEncoder,
    };
    #[pymodule_export]
    use super::files::{
        changed_files, delta_patches, file_stats, hash_file, hash_files, merge_hashes, open_beneath,
        pack_file, read_bytes, unpack_array, File,
    };
    #[pymodule_export]
    use super::front::{PyDescriptions, PyFront, PyPlan, PyRequestLog};
    #[pymodule_export]
    use super::graphs::{
        core_count, fill, graph_communities, graph_layout, graph_neighbourhood, induced_edges, pagerank,
        renumber, select_ranked, select_uniform, shortest_path, transpose, weighted_graph,
    };
    #[pymodule_export]
    use super::lock::{lock_file, FileLock};
    #[cfg(feature = "papers")]
    #[pymodule_export]
    use super::papers::builders::{
        concept_graph, concepts, fold_skeleton, select_by_concepts, skeleton_row_tokens,
    };
    #[cfg(feature = "papers")]
    #[pymodule_export]
    use super::papers::centrality::{betweenness, core_numbers};
    #[cfg(feature = "papers")]
    #[pymodule_export]
    use super::papers::citations::{
        citation_candidates, citation_links, edge_alphas, pass_messages, GraphNetwork,
    };
    #[cfg(feature = "papers")]
    #[pymodule_export]
    use super::papers::neighbours::{
        cooccurrence_kernels, cooccurrence_knn, keyword_means, keyword_means_by_words, knn_graph,
    };
    #[pymodule_export]
    use super::readers::{
        decode_text, formula_part, formula_text, limit_markup, lowered_text, pack_documents, raised_text,
        read_json_lines, web_page, PdfPages,
    };
    #[pymodule_export]
    use super::request::{PyMask, PyPrinted, PyReply, PyRequest};
    #[pymodule_export]
    use super::searcher::{expect_few_queries, PySearcher};
    #[pymodule_export]
    use super::shards::{
        first_preferred, has_only_function_words, print_shards, question_terms, reads_forms, sum_totals,
        PyBundle, PyShard, PyUnion, PyWeighting,
    };
    #[pymodule_export]
    use super::strings::{
        append_strings, label_titles, merge_strings, restore_strings, slice_strings, smallest_hashes,
        splice_rows, splice_strings, string_gaps, take_strings, PyPattern,
    };
    #[pymodule_export]
    use super::text::{
        corpus, count_tokens, detect_language, languages, lexical_keywords, query_parts, sentence_spans,
        stop_words, text_blocks, tokenise, vocabulary, Punkt,
    };
    #[pymodule_export]
    use super::units::{cut_units, PyCutUnits};
    #[pymodule_export]
    use super::vectors::{
        cosine_knn, embed_rows, fit_embedder, fuse_ranks, kmeans, pack_nibbles, pack_signs, quantise_vectors,
        row_scores, simd_levels, vector_top_k,
    };
    #[pymodule_export]
    use super::walk::{links_bm25, links_build, links_build_runs, links_weights, walk_rank};
    #[pymodule_export]
    use super::{windows_limit_memory, windows_memory, windows_peak_memory};

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // the name that Python gives it
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

#[global_allocator]
static ALLOCATOR: Reserve = Reserve;

/// The system's allocator, which releases the reserve block before it fails.
struct Reserve;

// SAFETY: every call passes the caller's arguments to the system's allocator; the addition only frees a block
// that `reserve` owns, once.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        again(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        again(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; on failure the old memory is unchanged, so the call may be repeated.
        again(size, || unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

// Functions that the standard library of Python offers only on Unix. On systems other than Windows they do nothing.

/// Return the bytes of the machine's memory and the available ones; None except on Windows.
#[pyfunction]
pub fn windows_memory() -> Option<(u64, u64)> {
    #[cfg(windows)]
    return ketrag_base::windows::machine_memory();
    #[cfg(not(windows))]
    None
}

/// Return the peak memory of this process in bytes; None except on Windows.
#[pyfunction]
pub fn windows_peak_memory() -> Option<u64> {
    #[cfg(windows)]
    return ketrag_base::windows::peak_memory();
    #[cfg(not(windows))]
    None
}

/// Limit the memory of this process to `limit` bytes; return whether the system accepted it, which only Windows does.
#[pyfunction]
pub fn windows_limit_memory(limit: usize) -> bool {
    #[cfg(windows)]
    return ketrag_base::windows::limit_memory(limit);
    #[cfg(not(windows))]
    {
        let _ = limit;
        false
    }
}
