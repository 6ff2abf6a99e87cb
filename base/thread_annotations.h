// Clang thread-safety attributes under short names; nothing on other compilers. Checked by the
// preset `asan`. Source of the attribute set: clang's ThreadSafetyAnalysis documentation.
#pragma once

#if defined(__clang__)
#define PIPEYARD_TSA(x) __attribute__((x))
#else
#define PIPEYARD_TSA(x)
#endif

// Abseil, which comes with gRPC's headers, defines some of these names with the same meaning.
#undef GUARDED_BY
#undef PT_GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS

#define CAPABILITY(name) PIPEYARD_TSA(capability(name))
#define SCOPED_CAPABILITY PIPEYARD_TSA(scoped_lockable)
#define GUARDED_BY(x) PIPEYARD_TSA(guarded_by(x))
#define PT_GUARDED_BY(x) PIPEYARD_TSA(pt_guarded_by(x))
#define REQUIRES(...) PIPEYARD_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) PIPEYARD_TSA(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) PIPEYARD_TSA(acquire_capability(__VA_ARGS__))
#define RELEASE(...) PIPEYARD_TSA(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) PIPEYARD_TSA(try_acquire_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) PIPEYARD_TSA(assert_capability(x))
#define RETURN_CAPABILITY(x) PIPEYARD_TSA(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS PIPEYARD_TSA(no_thread_safety_analysis)
