// Package uplink is the program of a Node whose card is a port of the switch: the idea of
// Antrea's design for Windows Nodes, with the marks and names of Antrea v1.15, for Linux. The
// switch itself translates the source of what pods send to the outside.
//
//	program.go  tables and their numbers, and the entries for a Node
//	marks.go    what registers and ct_mark mean
//
// Each table has a file of its name. Packets to the outside leave in one of two ways:
//
//   - loop: by the gateway. The host routes them, and they enter again by its own port.
//   - direct: by the card at once. The switch writes the next hop's MAC address
//     (layout.Node.Router).
//
// Rows W-01 to W-27 are the statements of the document, as docs/pipelines.md lists them.
// Policies are rules of a pod by address and port (layout.Policy).
package uplink
