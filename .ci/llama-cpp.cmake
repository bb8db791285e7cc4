# Read by the build of llama-cpp-python (CMAKE_PROJECT_llama_cpp_INCLUDE): the part that its Python package
# never calls is left out, and the many small files of models are compiled some at a time.
set(LLAMA_BUILD_COMMON OFF)

function(ketrag_join_models)
    get_target_property(sources llama SOURCES)
    list(FILTER sources EXCLUDE REGEX "(^|/)models/")
    set_source_files_properties(${sources} TARGET_DIRECTORY llama PROPERTIES SKIP_UNITY_BUILD_INCLUSION TRUE)
    set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
endfunction()

cmake_language(DEFER CALL ketrag_join_models)
