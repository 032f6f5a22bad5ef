import CLibuv

/// The memory that this process has.
public enum ResidentMemory {
    /// In bytes; 0 where the kernel does not say it.
    @Sendable public static func bytes() -> Int {
        var bytes = 0
        return uv_resident_set_memory(&bytes) == 0 ? bytes : 0
    }

    /// Gives what is free back to the kernel.
    public static func giveBack() { reel_give_memory_back() }
}
