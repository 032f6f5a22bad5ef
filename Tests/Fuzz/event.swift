// room: ReelCore
// with: Tests/ReelCoreTests/Support/DecoderProperties.swift
// covers: Sources/ReelCore/Event/Barrier.swift
// covers: Sources/ReelCore/Event/EventIntake.swift
// covers: Sources/ReelCore/Event/ParsedEvent+Parse.swift
// covers: Sources/ReelCore/Event/ParsedSeed.swift
// covers: Sources/ReelCore/Event/PartitionRules.swift
// covers: Sources/ReelCore/Event/Site.swift
import ReelCore

/// The function that libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let fault = DecoderProperties.event(Bytes(start: data, count: count))
    precondition(fault == nil, fault ?? "")
    return 0
}
