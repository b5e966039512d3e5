package ports

import (
	"slices"

	"github.com/antrail/antrail/packet"
)

// Reason says why a driver dropped a frame. The list is closed. Each reason belongs to one of
// Stats' four counters of drops and errors.
type Reason uint8

// The reasons of the drivers that move plain Ethernet frames.
const (
	// None means that nothing was dropped.
	None Reason = iota
	// RxRingFull : frames came faster than Receive took them.
	RxRingFull
	// RxNoFrame : the pool had no free frame to receive into.
	RxNoFrame
	// RxTooLong : the frame does not fit into one buffer.
	RxTooLong
	// RxClosed : the frame was waiting to be received when the port was closed.
	RxClosed
	// RxInvalid : the kernel's descriptor of a frame points outside the pool.
	RxInvalid
	// RxFailed : reading from the device failed.
	RxFailed
	// RxOffload : the sender left work undone of a kind that the switch does not know.
	RxOffload
	// TxRingFull : frames were transmitted faster than they left.
	TxRingFull
	// TxNoFrame : the pool had no free frame to copy the frame into.
	TxNoFrame
	// TxLinkDown : the link is down or gone.
	TxLinkDown
	// TxClosed : the port was closed.
	TxClosed
	// TxRunt : no room for an Ethernet header.
	TxRunt
	// TxTooLong : longer than MTU, Ethernet header and one VLAN tag.
	TxTooLong
	// TxOffload : the sender left a checksum or segmentation undone, and the port accepts
	// neither.
	TxOffload
	// TxFailed : the kernel refused the frame.
	TxFailed
	reasons
)

// kind is the counter of Stats that a reason adds to.
type kind uint8

const (
	rxDropped kind = iota
	rxErrors
	txDropped
	txErrors
)

type reasonText struct {
	kind kind
	text string
}

var reasonTexts = [reasons]reasonText{
	None:       {},
	RxRingFull: {rxDropped, "rx ring full"},
	RxNoFrame:  {rxDropped, "no free frame to receive into"},
	RxTooLong:  {rxDropped, "received frame longer than a buffer"},
	RxClosed:   {rxDropped, "port closed before the frame was received"},
	RxInvalid:  {rxErrors, "invalid descriptor from the kernel"},
	RxFailed:   {rxErrors, "reading from the device failed"},
	RxOffload:  {rxErrors, "received frame needs an unknown offload"},
	TxRingFull: {txDropped, "tx ring full"},
	TxNoFrame:  {txDropped, "no free frame to send from"},
	TxLinkDown: {txDropped, "link is down"},
	TxClosed:   {txDropped, "port is closed"},
	TxRunt:     {txErrors, "frame shorter than an Ethernet header"},
	TxTooLong:  {txErrors, "frame longer than the MTU"},
	TxOffload:  {txErrors, "frame needs an offload that the port lacks"},
	TxFailed:   {txErrors, "the kernel refused the frame"},
}

// String is the text of the reason in Stats.Reasons.
func (r Reason) String() string {
	if r >= reasons {
		return "unknown reason"
	}
	return reasonTexts[r].text
}

// Sends says whether a text is a reason not to send.
func Sends(text string) bool {
	i := slices.IndexFunc(reasonTexts[:], func(r reasonText) bool { return r.text == text })
	return i > 0 && (reasonTexts[i].kind == txDropped || reasonTexts[i].kind == txErrors) || slices.Index(tunnelReasonTexts[:], text) >= int(TxNoNode)
}

// Reasons are the texts of all reasons, except those of tunnel headers (tunnel.Reasons).
func Reasons() (all []string) {
	for r := None + 1; r < reasons; r++ {
		all = append(all, r.String())
	}
	return append(all, tunnelReasonTexts[:]...)
}

const (
	etherHeader = 14
	vlanTag     = 4
)

// MaxFrame is the longest frame that a link of this MTU carries. The MTU excludes the Ethernet
// header and one VLAN tag.
func MaxFrame(mtu int) int { return mtu + etherHeader + vlanTag }

// Refusal is the reason not to send f on a link of this MTU that accepts the undone work c. It is
// None if f may be sent. The MTU limits the segments of a frame, as where Linux routes it. So it
// does not matter which party cuts it.
func Refusal(f *packet.Frame, mtu int, c Carries) Reason {
	switch {
	case f.Len() < etherHeader:
		return TxRunt
	case !c.All(f):
		return TxOffload
	case f.Len() > MaxFrame(mtu) && packet.SegmentLen(f) > MaxFrame(mtu):
		return TxTooLong
	}
	return None
}
