//! What ends an instance: a panic, or memory exhaustion.
//!
//! Each is thrown as a plain object with `message` and `spent: true`, from the panic hook or the allocator. Nothing is
//! unwound, so the instance must not be used again. A trap of WebAssembly itself (stack overflow) reaches the page as a
//! `RuntimeError`, and the instance is unusable too.

#[cfg(target_arch = "wasm32")]
mod instance {
    use js_sys::{Object, Reflect};
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicBool, Ordering};
    use wasm_bindgen::prelude::*;

    /// Called once when an instance starts.
    #[wasm_bindgen(start)]
    fn begin() {
        std::panic::set_hook(Box::new(|info| {
            let what = info.to_string().replace('\n', " ");
            end(&format!("Paceline has a defect: {what}. Please report it with the scenario."));
        }));
    }

    /// Throws the last object that this instance throws.
    fn end(message: &str) -> ! {
        let thrown = Object::new();
        // Neither fails on a new object.
        let _ = Reflect::set(&thrown, &"message".into(), &message.into());
        let _ = Reflect::set(&thrown, &"spent".into(), &true.into());
        wasm_bindgen::throw_val(thrown.into())
    }

    /// The system's allocator, which reports when memory is exhausted.
    struct Bounded;

    #[global_allocator]
    static MEMORY: Bounded = Bounded;
    /// Whether memory was exhausted, and that is being reported.
    static NO_MORE: AtomicBool = AtomicBool::new(false);

    fn no_more() -> ! {
        if NO_MORE.swap(true, Ordering::Relaxed) {
            core::arch::wasm32::unreachable()
        }
        end(concat!(
            "this takes more memory than the ",
            env!("PACELINE_MAX_MEMORY"),
            " MiB that a page gives it: record fewer kinds or less often, shorten the run, or use `paceline run`"
        ))
    }

    fn there(memory: *mut u8) -> *mut u8 {
        if memory.is_null() { no_more() } else { memory }
    }

    // SAFETY: every call is passed on to the system's allocator unchanged; a null pointer is never returned.
    unsafe impl GlobalAlloc for Bounded {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's guarantees are those that the system's allocator requires.
            there(unsafe { System.alloc(layout) })
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: as above.
            there(unsafe { System.alloc_zeroed(layout) })
        }

        unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: as above.
            there(unsafe { System.realloc(memory, layout, size) })
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            // SAFETY: as above.
            unsafe { System.dealloc(memory, layout) }
        }
    }
}
