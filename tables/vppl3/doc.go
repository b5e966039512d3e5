// Package vppl3 is the program of pods that are routed, as Contiv-VPP attached them: a pod has a
// /32 and a next hop that no machine has, every pod has the same MAC address, and the switch
// takes 1 from the TTL on one Node too. Tables have the names of VPP's graph nodes, so a trace
// in the form of VPP's reads as VPP's own.
//
//	pipeline.go the tables in order, and all entries for a Node
//	program.go  numbers and words that the tables share, and what a Node must have
//	marks.go    registers and zones
//	sample.go   the two pods of the document
//
// Each table has a file of its name. Rows V-01 to V-24 are the statements of the document, as
// docs/pipelines.md lists them. The document has no entries, but says in words what each node
// does; so no entry here is literal.
package vppl3
