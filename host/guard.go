package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/antrail/antrail/internal/nft"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Pods must not reach a tunnel. A packet from a pod to another Node's tunnel port would
// leave by the gateway, masqueraded, and look like this Node's. So a packet from the gateway
// is dropped if it is to the tunnel's UDP port, or GRE, at any address:
//
//  1. The hooks are forward and input. Every packet that another program or this one
//     translates has its last destination there, and none has left the Node yet.
//  2. The rule comes before this table's accept, in its own chain. Another program's
//     accept ends only that program's chain.
//  3. IPv6 extension headers do not hide the port: nftables looks behind them (meta
//     l4proto).
//  4. A fragment does not either. Our NAT chains have the kernel put datagrams together
//     before all other hooks. Without that, the first fragment has the port, because it
//     holds 8 bytes at least, and without the first one the others are worth nothing.
//
// Processes of the Node itself, such as pods with hostNetwork, do not send by the gateway.
// They may send as the Node does.

// guardCounter counts the packets that this drops. guardInput is the chain of the input
// hook. The rule of the forward hook is in the chain "forward".
const (
	guardCounter = "from-gateway-to-tunnel"
	guardInput   = "input"
)

// words matches the outer packets, in nftables' syntax.
func (o Outer) words() string {
	outer := "meta l4proto " + strconv.Itoa(int(o.Proto))
	if o.Port != 0 {
		outer += " th dport " + strconv.Itoa(int(o.Port))
	}
	return outer
}

// addGuard makes the chain of the input hook, and the first rule of both chains. The chain
// "forward" exists already.
func addGuard(t nft.Table, c *Config) {
	if c.Tunnel == (Outer{}) {
		return
	}
	t.Counter(guardCounter)
	t.Chain(guardInput, "filter", "input", nft.Filter)
	for _, chain := range []string{"forward", guardInput} {
		t.Rule(chain, "iifname", quote(c.Gateway), c.Tunnel.words(), "counter name", quote(guardCounter), "drop")
	}
}

// GuardDrops is how many packets from the gateway to a tunnel the kernel has dropped since
// the table was written (NFT_MSG_GETOBJ). Without the table or a tunnel, it is an error.
func GuardDrops() (uint64, error) {
	const counter = 1 // NFT_OBJECT_COUNTER
	kind := make([]byte, 4)
	binary.BigEndian.PutUint32(kind, counter)
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETOBJ, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.NFPROTO_INET, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(unix.NFTA_OBJ_TABLE, nl.ZeroTerminated(TableName)))
	req.AddData(nl.NewRtAttr(unix.NFTA_OBJ_NAME, nl.ZeroTerminated(guardCounter)))
	req.AddData(nl.NewRtAttr(unix.NFTA_OBJ_TYPE, kind))
	answers, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWOBJ)
	if err != nil {
		return 0, fmt.Errorf("nftables counter %s: %w", guardCounter, err)
	}
	for _, a := range answers {
		if n, ok := counted(a[min(len(a), nl.SizeofNfgenmsg):]); ok {
			return n, nil
		}
	}
	return 0, errors.New("nftables counter " + guardCounter + ": the kernel's answer has no packet count")
}

// counted is a counter's packets, from its attributes.
func counted(object []byte) (uint64, bool) {
	b := object
	for _, want := range []uint16{unix.NFTA_OBJ_DATA, unix.NFTA_COUNTER_PACKETS} {
		attrs, err := nl.ParseRouteAttr(b)
		if err != nil {
			return 0, false
		}
		b = nil
		for _, a := range attrs {
			if a.Attr.Type&nl.NLA_TYPE_MASK == want {
				b = a.Value
			}
		}
	}
	if len(b) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}
