package agent

import _ "embed"

// goodConfig is the configuration of a Node with two pods and one peer.
//
//go:embed config/testdata/node-a.yaml
var goodConfig string
