// room: ReelCore
// with: Tests/ReelCoreTests/DecoderProperties.swift
import ReelCore

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let fault = DecoderProperties.frame(Bytes(start: data, count: count))
    precondition(fault == nil, fault ?? "")
    return 0
}
