// Package deploy holds the files by which a cluster gets antrail: the network
// configuration of the CNI plugin, Kustomize bases and a Helm chart. It has no code.
package deploy

import _ "embed"

// Conflist is the network configuration that container runtimes read.
//
//go:embed cni/10-antrail.conflist
var Conflist []byte
