// room: ReelCore
// with: Tests/ReelCoreTests/Support/DecoderProperties.swift
// covers: Sources/ReelCore/Wire/ClientFrame+JSON.swift
// covers: Sources/ReelCore/Wire/DeliveredEvent.swift
// covers: Sources/ReelCore/Wire/JSONObject.swift
// covers: Sources/ReelCore/Wire/JSONReader.swift
// covers: Sources/ReelCore/Wire/ServerFrame+Decode.swift
// covers: Sources/ReelCore/Wire/ServerFrame+Encode.swift
import ReelCore

/// The function that libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let fault = DecoderProperties.frame(Bytes(start: data, count: count))
    precondition(fault == nil, fault ?? "")
    return 0
}
