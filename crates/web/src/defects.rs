//! What ends an instance: a panic, or memory that runs out.
//!
//! Either is thrown as a plain object with `message` and `spent: true`, from within the panic's hook or the allocator:
//! nothing is unwound, so that the instance must not be used again. A trap of WebAssembly itself (a stack that runs out)
//! reaches the page as a `RuntimeError`, and spends the instance too.

#[cfg(target_arch = "wasm32")]
mod instance {
    use js_sys::{Object, Reflect};
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicBool, Ordering};
    use wasm_bindgen::prelude::*;

    /// Called once when an instance begins.
    #[wasm_bindgen(start)]
    fn begin() {
        std::panic::set_hook(Box::new(|info| {
            let what = info.to_string().replace('\n', " ");
            end(&format!("Paceline has a defect: {what}. Please report it with the scenario."));
        }));
    }

    /// Throws the last thing that this instance throws.
    fn end(message: &str) -> ! {
        let thrown = Object::new();
        // neither fails on an object that has just been made
        let _ = Reflect::set(&thrown, &"message".into(), &message.into());
        let _ = Reflect::set(&thrown, &"spent".into(), &true.into());
        wasm_bindgen::throw_val(thrown.into())
    }

    /// The usual allocator, which says so when there is no more.
    struct Bounded;

    #[global_allocator]
    static MEMORY: Bounded = Bounded;
    /// Whether there was none, and that is being told.
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

    // SAFETY: every call is passed on to the system's allocator as it came; a null pointer is not handed on.
    unsafe impl GlobalAlloc for Bounded {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's promises are the system's.
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
