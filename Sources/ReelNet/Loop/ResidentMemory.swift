import CLibuv

/// The resident memory of this process.
public enum ResidentMemory {
    /// Returns the resident memory in bytes; 0 if the kernel does not report it.
    @Sendable public static func bytes() -> Int {
        var bytes = 0
        return uv_resident_set_memory(&bytes) == 0 ? bytes : 0
    }

    /// Returns free memory of the allocator to the kernel.
    public static func giveBack() { reel_give_memory_back() }
}
