// Package assignments is what an agent gave to objects, in a file for the next agent: the
// numbers of groups, packet marks and rules, the ports of pods, and the Node's side. The
// entries with these numbers are in the switch, which keeps them by itself.
//
//	assignments.go  the file, written and read
package assignments
