// room: ReelNet
// with: Tests/ReelNetTests/Support/DecoderProperties.swift
import ReelNet

/// The function that libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let fault = DecoderProperties.request(Array(UnsafeBufferPointer(start: data, count: count)))
    precondition(fault == nil, fault ?? "")
    return 0
}
