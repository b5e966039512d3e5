// Package testbed has the parts around a contender: network namespaces and links, Nodes and pods, frames.
// Its generator sends more frames than any contender takes. Links need root.
//
//	namespace.go                         network namespaces, and threads in them
//	testlinks.go                         links, addresses, routes, a bridge
//	testnode.go, overlay.go                  a Node with pods; two Nodes with a pod each
//	testframes.go                        frames between two pods
//	portchange.go                        ports by the number of a connection, in Go and in the kernel
//	topology.go                          the links between generator, contender and sink
//	generator.go, generatorprogram.go    the generator, and its program in the kernel
//	switch.go                            a switch of antrail with two ports
package testbed
