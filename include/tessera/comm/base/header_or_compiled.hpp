#pragma once

// The library has two forms: headers alone, or compiled once (TESSERA_COMPILED, which the CMake target
// tessera::tessera defines). What is no template and costs much is declared in X.hpp and defined in X_impl.hpp, which
// X.hpp includes at its end unless it is compiled.
#ifdef TESSERA_COMPILED
#define TESSERA_INLINE
#define TESSERA_FORM "tessera.compiled"
#else
#define TESSERA_INLINE inline
#define TESSERA_FORM "tessera.headers"
#endif

// A program has one form, header-only or compiled. Files of both define this symbol, each form in a section group of
// its own, of which a linker keeps one. So a linker refuses files of two forms with "multiple definition".
#ifdef __ELF__
__asm__(".pushsection .tessera.form, \"G\", %progbits, " TESSERA_FORM
        ", comdat\n"
        ".globl tessera_program_with_and_without_TESSERA_COMPILED\n"
        "tessera_program_with_and_without_TESSERA_COMPILED:\n"
        ".byte 0\n"
        ".popsection\n");
#endif
#undef TESSERA_FORM
