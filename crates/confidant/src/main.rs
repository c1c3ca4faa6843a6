//! The program `confidant`: see the library beside it.

/// A turn makes and drops many small things, for which glibc's takes longer ([docs/BUILDING.md](../../../docs/BUILDING.md)).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    confidant::main()
}
