package ports

import "github.com/antrail/antrail/packet"

// Carries says which work that a sender left undone (packet.Offload) a port passes on
// with the frame, or does itself. The kernel or a card does what is passed on.
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

// the partial checksums, by where in the transport header they are
const tcpChecksum, udpChecksum = 16, 6

// All says whether f needs nothing that is not carried. Its offload state is
// what packet.AdmitOffload has let pass.
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
