package ports

import "github.com/antrail/antrail/packet"

// Carries says which undone work of a sender (packet.Offload) a port accepts with a frame. The
// port does it, or the kernel or a card does.
type Carries uint8

// The kinds of work.
const (
	// CarriesChecksum : a partial TCP or UDP checksum.
	CarriesChecksum Carries = 1 << iota
	// CarriesTCP : TCP segmentation.
	CarriesTCP
	// CarriesUDP : UDP segmentation.
	CarriesUDP
)

// The offsets of partial checksums in the transport header.
const tcpChecksum, udpChecksum = 16, 6

// All says whether the port accepts all undone work of f. packet.AdmitOffload has accepted f's
// offload state.
func (c Carries) All(f *packet.Frame) bool {
	o := &f.Offload
	var need Carries
	switch {
	case o.None():
		return true
	case o.SegmentSize == 0:
		need = CarriesChecksum
	case o.ChecksumPartial && o.ChecksumOffset == tcpChecksum:
		need = CarriesChecksum | CarriesTCP
	case o.ChecksumPartial && o.ChecksumOffset == udpChecksum:
		need = CarriesChecksum | CarriesUDP
	default:
		return false
	}
	return c&need == need
}
