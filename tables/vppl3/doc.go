// Package vppl3 is the program of routed pods, as Contiv-VPP attached them. A pod has a /32 and a
// next hop that no machine has. All pods have the same MAC address. The switch decrements the TTL
// within one Node too. Tables have the names of VPP's graph nodes, so a trace in VPP's form reads
// like VPP's own.
//
//	pipeline.go the tables in order, and all entries for a Node
//	program.go  numbers and words that the tables share, and the requirements for a Node
//	marks.go    registers and zones
//	sample.go   the two pods of the document
//
// Each table has a file of its name. Rows V-01 to V-24 are the statements of the document, as
// docs/pipelines.md lists them. The document describes in words what each node does. It has no
// entries, so no entry here is literal.
package vppl3
