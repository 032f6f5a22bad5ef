import Testing

@Suite struct ReelNetPlace {}
