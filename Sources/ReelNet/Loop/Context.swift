import CLibuv

/// The one place where Swift objects pass through libuv's `void *data`.
enum Context {
    /// Keeps the object alive until `take`.
    static func pass(_ object: AnyObject) -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(object).toOpaque()
    }

    /// The object, still kept alive by its `pass`.
    static func borrow<T: AnyObject>(_ pointer: UnsafeMutableRawPointer?, as type: T.Type) -> T {
        Unmanaged<T>.fromOpaque(pointer!).takeUnretainedValue()
    }

    /// The object; undoes `pass`.
    static func take<T: AnyObject>(_ pointer: UnsafeMutableRawPointer?, as type: T.Type) -> T {
        Unmanaged<T>.fromOpaque(pointer!).takeRetainedValue()
    }
}

/// The handle as its base type, as C's casts do.
func base<Handle>(_ handle: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
}
