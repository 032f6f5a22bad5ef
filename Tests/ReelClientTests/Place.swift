import Testing

@Suite struct ReelClientPlace {}
