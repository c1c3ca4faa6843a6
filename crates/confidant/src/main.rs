//! The program `confidant`: see the library beside it.

fn main() -> std::process::ExitCode {
    confidant::main()
}
