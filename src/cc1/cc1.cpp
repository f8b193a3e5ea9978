// smelt-cc1: clang's compiler proper as a program of smelt's own, linked statically with only what Metal
// needs.
//
// It is called as `clang -cc1` is, with the arguments that src/frontend/clang.c passes, and does what clang
// does with them: preprocess, precompile the prelude, or emit bitcode, without functions that nothing uses. A
// static program with a fifth of clang's code starts in a tenth of the time. Called with -compile, it is the
// second half of the way, from bitcode to code (compile.h). This is smelt's only C++ file: LLVM's C interface
// has no clang.
#include "cc1/compile.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/Basic/DiagnosticFrontend.h>
#include <clang/Basic/Stack.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Frontend/TextDiagnosticBuffer.h>
#include <clang/Sema/Sema.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/Process.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <csignal>
#include <sys/prctl.h>
#include <unistd.h>

using namespace clang;

// ---- A slimmer precompiled prelude.
//
// In SYCL's device mode, clang records each of the prelude's functions as one whose deferred diagnostics must
// be looked at again, and every compile that uses the image deserialises all of them. The prelude has no such
// diagnostics. Delegating constructors are recorded, too, and each compile would look for cycles among the
// prelude's. The list of diagnostics is private; an explicit instantiation of a template may name it.
template <typename Tag, typename Tag::type Member> struct access_to {
    friend typename Tag::type member_of(Tag) { return Member; }
};
struct deferred_declarations {
    using type = llvm::SmallSetVector<Decl *, 4> Sema::*;
    friend type member_of(deferred_declarations);
};
template struct access_to<deferred_declarations, &Sema::DeclsToCheckForDeferredDiags>;

namespace {

class forget_deferred : public ASTConsumer {
    CompilerInstance &compiler;

  public:
    explicit forget_deferred(CompilerInstance &instance) : compiler(instance) {}
    void HandleTranslationUnit(ASTContext &) override {
        Sema &sema = compiler.getSema();
        (sema.*member_of(deferred_declarations())).clear();
        sema.DelegatingCtorDecls.erase(sema.DelegatingCtorDecls.begin(nullptr),
                                       sema.DelegatingCtorDecls.end());
    }
};

} // namespace

// CMakeLists.txt has LLVM call these, so clang stores the texts in an image uncompressed. A compile that
// reads one line of a compressed text, for a message or a macro, would decompress all of it.
extern "C" bool __wrap__ZN4llvm11compression4zstd11isAvailableEv() {
    return false;
}
extern "C" bool __wrap__ZN4llvm11compression4zlib11isAvailableEv() {
    return false;
}

namespace {

class precompile : public GeneratePCHAction {
    std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &compiler, StringRef file) override {
        auto writer = GeneratePCHAction::CreateASTConsumer(compiler, file);
        if (!writer) return nullptr;
        std::vector<std::unique_ptr<ASTConsumer>> consumers;
        consumers.push_back(std::make_unique<forget_deferred>(compiler));
        consumers.push_back(std::move(writer));
        return std::make_unique<MultiplexConsumer>(std::move(consumers));
    }
};

// ---- Bitcode. clang's own action for it would link LLVM's code generation.

// Of a process that goes on with it.
struct kept_bitcode {
    llvm::SmallVector<char, 0> bytes;
    uint64_t instructions = 0;
};

// In Metal, half and bfloat have no common type. clang gives them one, but emits an invalid
// conversion. So an expression of both is an error here, in the form of clang's messages, with its place.
bool mixes_halves(const llvm::Instruction &instruction) {
    if (!isa<llvm::FPTruncInst, llvm::FPExtInst>(instruction)) return false;
    llvm::Type *from = instruction.getOperand(0)->getType()->getScalarType();
    llvm::Type *to = instruction.getType()->getScalarType();
    return from->isBFloatTy() ? to->isHalfTy() : from->isHalfTy() && to->isBFloatTy();
}

void report_mixed_halves(const llvm::DebugLoc &at) {
    if (at) {
        StringRef file = at->getFilename();
        llvm::errs() << file << ":" << at.getLine() << ":" << at.getCol() << ": ";
    }
    llvm::errs() << "error: half and bfloat have no common type; convert one of them, as in half(x)\n";
}

bool has_mixed_halves(const llvm::Module &module) {
    constexpr int most = 20; // messages
    llvm::DebugLoc last;
    int found = 0;
    for (const llvm::Function &function : module)
        for (const llvm::BasicBlock &block : function)
            for (const llvm::Instruction &instruction : block) {
                if (found == most || !mixes_halves(instruction)) continue;
                if (found == 0 || instruction.getDebugLoc() != last)
                    report_mixed_halves(instruction.getDebugLoc());
                last = instruction.getDebugLoc();
                found++;
            }
    return found > 0;
}

class write_bitcode : public ASTConsumer {
    CompilerInstance &compiler;
    CodeGenerator &generator;
    std::unique_ptr<raw_pwrite_stream> output;
    kept_bitcode *kept;

  public:
    write_bitcode(CompilerInstance &instance, CodeGenerator &from, std::unique_ptr<raw_pwrite_stream> to,
                  kept_bitcode *keep)
        : compiler(instance), generator(from), output(std::move(to)), kept(keep) {}
    void HandleTranslationUnit(ASTContext &) override {
        llvm::Module *module = generator.GetModule();
        if (!module || compiler.getDiagnostics().hasErrorOccurred()) return;
        if (has_mixed_halves(*module)) {
            llvm::errs().flush();
            llvm::sys::Process::Exit(1);
        }
        if (compiler.getCodeGenOpts().VerifyModule && llvm::verifyModule(*module, &llvm::errs()))
            llvm::report_fatal_error("Broken module found, compilation aborted!");
        llvm::WriteBitcodeToFile(*module, *output, compiler.getCodeGenOpts().EmitLLVMUseLists);
        if (kept) kept->instructions = module->getInstructionCount();
    }
};

// Functions of the source become inline: code is generated only for those that the entry point reaches. They
// are no longer external in the bitcode, which makes no difference behind it. Functions with the names of C
// stay: labels may stand for them (smelt_air.h).
class inline_functions : public ASTConsumer {
    void visit(Decl *declaration) {
        if (auto *function = dyn_cast<FunctionDecl>(declaration)) {
            if (!function->hasAttr<UsedAttr>() && !function->isExternC()) function->setImplicitlyInline();
        } else if (isa<NamespaceDecl, LinkageSpecDecl>(declaration)) {
            for (Decl *inner : cast<DeclContext>(declaration)->decls()) visit(inner);
        }
    }

  public:
    bool HandleTopLevelDecl(DeclGroupRef group) override {
        for (Decl *declaration : group) visit(declaration);
        return true;
    }
};

class emit_bitcode : public ASTFrontendAction {
    llvm::LLVMContext context; // lives as long as the module in the generator
    kept_bitcode *kept;

    std::unique_ptr<raw_pwrite_stream> open_output(CompilerInstance &compiler, StringRef file) {
        if (kept) return std::make_unique<llvm::raw_svector_ostream>(kept->bytes);
        return compiler.createDefaultOutputFile(true, file, "bc");
    }

    std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &compiler, StringRef file) override {
        auto output = open_output(compiler, file);
        if (!output) return nullptr;
        context.setDiscardValueNames(compiler.getCodeGenOpts().DiscardValueNames);
        CodeGenerator *generator = CreateLLVMCodeGen(
            compiler.getDiagnostics(), file, &compiler.getVirtualFileSystem(), compiler.getHeaderSearchOpts(),
            compiler.getPreprocessorOpts(), compiler.getCodeGenOpts(), context);
        std::vector<std::unique_ptr<ASTConsumer>> consumers;
        consumers.push_back(std::make_unique<inline_functions>());
        consumers.emplace_back(generator);
        consumers.push_back(std::make_unique<write_bitcode>(compiler, *generator, std::move(output), kept));
        return std::make_unique<MultiplexConsumer>(std::move(consumers));
    }

  public:
    explicit emit_bitcode(kept_bitcode *keep) : kept(keep) {}
};

std::unique_ptr<FrontendAction> action_of(const FrontendOptions &options, kept_bitcode *keep) {
    switch (options.ProgramAction) {
    case frontend::EmitBC:
        return std::make_unique<emit_bitcode>(keep);
    case frontend::GeneratePCH:
        return std::make_unique<precompile>();
    case frontend::PrintPreprocessedInput:
        return std::make_unique<PrintPreprocessedAction>();
    default:
        return nullptr;
    }
}

// What LLVM cannot go on from, in clang's words; the exit status is clang's, too.
void report_fatal(void *diagnostics, const char *message, bool) {
    static_cast<DiagnosticsEngine *>(diagnostics)->Report(diag::err_fe_error_backend) << message;
    llvm::errs().flush();
    llvm::sys::Process::Exit(70);
}

// `keep` (may be null) takes the bitcode instead of the output that the arguments name.
bool run(ArrayRef<const char *> arguments, const char *program, kept_bitcode *keep) {
    auto &compiler = *new CompilerInstance; // never freed: the process ends
    // Diagnostics about the arguments come before there is anything that prints them.
    auto *buffer = new TextDiagnosticBuffer;
    DiagnosticsEngine early(new DiagnosticIDs(), new DiagnosticOptions(), buffer);
    bool sound = CompilerInvocation::CreateFromArgs(compiler.getInvocation(), arguments, early, program);
    compiler.createDiagnostics();
    if (!compiler.hasDiagnostics()) return false;
    llvm::install_fatal_error_handler(report_fatal, &compiler.getDiagnostics());
    buffer->FlushDiagnostics(compiler.getDiagnostics());
    if (!sound) {
        compiler.getDiagnosticClient().finish();
        return false;
    }
    FrontendAction *action = action_of(compiler.getFrontendOpts(), keep).release(); // never freed, either
    if (!action) {
        llvm::errs() << "error: smelt-cc1 preprocesses (-E), precompiles (-emit-pch) and emits bitcode "
                        "(-emit-llvm-bc); expected one of these\n";
        return false;
    }
    compiler.getFrontendOpts().DisableFree = true;
    return compiler.ExecuteAction(*action);
}

[[noreturn]] void end(int status) {
    llvm::outs().flush();
    llvm::errs().flush();
    _exit(status);
}

// Clang, and LLVM behind it.
int translate_and_compile(ArrayRef<const char *> arguments, const char *program, long seconds) {
    kept_bitcode bitcode;
    cc1_begin_translation(seconds);
    if (!run(arguments, program, &bitcode)) return 1;
    llvm::remove_fatal_error_handler();
    return cc1_compile_translation(bitcode.bytes.data(), bitcode.bytes.size(), bitcode.instructions, seconds);
}

} // namespace

int main(int count, const char **arguments) {
    // Nobody wants the result of a host that is gone.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The host reads "out of memory"; nothing here could catch what new throws.
    llvm::install_out_of_memory_new_handler();
    noteBottomOfStack();
    if (count == 2 && StringRef(arguments[1]) == "--version") {
        llvm::outs() << getClangFullVersion() << "\n";
        return 0;
    }
    if (count == 2 && StringRef(arguments[1]) == "-compile") end(cc1_compile());
    if (count == 3 && StringRef(arguments[1]) == "-vector-bits") return cc1_print_vector_bits(arguments[2]);
    ArrayRef all(arguments, count);
    if (count > 3 && StringRef(arguments[1]) == "-whole")
        end(translate_and_compile(all.slice(3), arguments[0], atol(arguments[2])));
    if (count < 2 || StringRef(arguments[1]) != "-cc1") {
        llvm::errs()
            << "usage: smelt-cc1 --version | -cc1 ARGUMENT... | -compile | -whole SECONDS ARGUMENT... | "
               "-vector-bits CPU\nsmelt starts this program itself, to compile Metal source.\n";
        return 2;
    }
    end(run(all.slice(2), arguments[0], nullptr) ? 0 : 1);
}
