//! The program `confidant`: see the library beside it.

/// A turn makes and drops many small things, for which glibc's takes longer ([docs/BUILDING.md](../../../docs/BUILDING.md)).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Its memory would be given out in pages of 2 MiB, which takes 20 MB more for a server that does nothing. Where this cannot be
    // said, it is only that.
    #[cfg(target_os = "linux")]
    let _said = rustix::thread::disable_transparent_huge_pages(true);
    confidant::main()
}
