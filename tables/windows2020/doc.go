// Package windows2020 is the program of Antrea's design of 2020 for Windows Nodes. The Node's
// card is a port of the switch. The switch itself translates the source of packets from pods to
// the outside. The program is for comparison and teaching. Open vSwitch has removed its support
// of Windows, and Antrea its entries.
//
//	program.go  tables and their numbers, and the entries for a Node
//	marks.go    the document's registers and ct_mark
//
// Each table has a file of its name. An entry is one of three kinds:
//
//   - the document has it, letter by letter (literal);
//   - the document says it in words (written);
//   - the document says only "the same as on Linux" (linux).
//
// Rows W-01 to W-27 are the statements of the document, as docs/pipelines.md lists them.
package windows2020
