import CLibuv

/// The only code that passes Swift objects through libuv's `void *data`.
enum Context {
    /// Returns a pointer to the object and keeps the object alive until `take`.
    static func pass(_ object: AnyObject) -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(object).toOpaque()
    }

    /// Returns the object; its `pass` still keeps it alive.
    static func borrow<T: AnyObject>(_ pointer: UnsafeMutableRawPointer?, as type: T.Type) -> T {
        Unmanaged<T>.fromOpaque(pointer!).takeUnretainedValue()
    }

    /// Returns the object and undoes `pass`.
    static func take<T: AnyObject>(_ pointer: UnsafeMutableRawPointer?, as type: T.Type) -> T {
        Unmanaged<T>.fromOpaque(pointer!).takeRetainedValue()
    }
}

/// Returns the handle as its base type, as a cast in C does.
func base<Handle>(_ handle: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
}
