// Package uplink is the program of a Node whose card is a port of the switch. It adapts Antrea's
// design for Windows Nodes to Linux, with the marks and names of Antrea v1.15. The switch itself
// translates the source of packets from pods to the outside.
//
//	program.go  tables and their numbers, and the entries for a Node
//	marks.go    the meaning of registers and ct_mark
//
// Each table has a file of its name. Packets to the outside leave in one of two ways:
//
//   - loop: by the gateway. The host routes them, and they enter again by its own port.
//   - direct: by the card at once. The switch writes the next hop's MAC address
//     (layout.Node.Router).
//
// Rows W-01 to W-27 are the statements of the document, as docs/pipelines.md lists them. Policies
// are rules of a pod by address and port (layout.Policy).
package uplink
