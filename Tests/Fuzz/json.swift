// room: ReelCore
// with: Tests/ReelCoreTests/Support/DecoderProperties.swift
// covers: Sources/ReelCore/Event/CanonicalJSON.swift
// covers: Sources/ReelCore/Event/CanonicalNumber.swift
// covers: Sources/ReelCore/Event/CanonicalNumber+Integers.swift
// covers: Sources/ReelCore/Event/CanonicalReader.swift
// covers: Sources/ReelCore/Wire/JSONReader.swift
import ReelCore

/// The function that libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let fault = DecoderProperties.json(Bytes(start: data, count: count))
    precondition(fault == nil, fault ?? "")
    return 0
}
