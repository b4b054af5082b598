// Copies of a hot function for wider registers, chosen when the plugin is loaded. Contraction is off for the
// whole plugin, so all copies give the same bits. Sanitizers' runtimes are not up when the choice is made.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define TENON_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define TENON_CLONES
#endif
