// Package support writes the archive of a support request. It has the answers of an agent or
// switch, the configuration without secrets, the log, and walks of the last dropped packets.
//
//	support.go  an archive, from the first question to the last byte
//	ask.go      the questions to the agent or switch
//	redact.go   replacement of names and addresses
//	namemapping.go the names in an archive
//	addressmapping.go addresses that keep their prefixes
//	archive.go  the files of an archive
package support
