import Testing

@Suite struct ReelLogPlace {}
