// Package podports keeps the switch's ports of pods equal to the existing links.
//
//	podports.go  ports come and go with their links
//	fault.go     links that are down or gone, in the words that all commands use
//	portsecurity.go port security: a Pod's port sends from the Pod's own MAC only
package podports
