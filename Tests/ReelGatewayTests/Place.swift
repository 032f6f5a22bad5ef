import Testing

@Suite struct ReelGatewayPlace {}
