package config

import _ "embed"

// goodConfig is the configuration of a Node with two pods and one peer.
//
//go:embed testdata/node-a.yaml
var goodConfig string
