package ports

// TunnelReason says why a tunnel port drops a frame, for reasons that only tunnel ports have. The
// list is closed.
type TunnelReason uint8

// The reasons of tunnel ports. Those with Tx are for frames to send.
const (
	RxUnknownNode TunnelReason = iota
	RxOuter
	RxForeign
	TxNoNode
	TxUnknownNode
	TxOtherFamily
	TxNoRoute
	TxSilent
	// NumTunnelReasons is the number of reasons.
	NumTunnelReasons
)

var tunnelReasonTexts = [NumTunnelReasons]string{
	RxUnknownNode: "outer source is not a known Node",
	RxOuter:       "outer headers or their checksums are wrong",
	RxForeign:     "inner source is in another Node's pod range",
	TxNoNode:      "frame for the tunnel names no Node",
	TxUnknownNode: "tunnel destination is not a known Node",
	TxOtherFamily: "tunnel destination is not of the family of the Node's own address",
	TxNoRoute:     "no route to the Node",
	TxSilent:      "the Node does not answer ARP or NDP",
}

// String is the text of the reason in Stats.Reasons.
func (r TunnelReason) String() string { return tunnelReasonTexts[r] }
