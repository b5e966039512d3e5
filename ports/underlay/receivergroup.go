package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tunnel"
)

// A pod that sends faster than the other Node's worker walks fills a socket's buffer there. With
// a single socket, the kernel would drop the datagrams of all pods alike. So the Node's own
// address has a group of sockets (SO_REUSEPORT, socket(7)):
//
//  1. A program in the kernel chooses the socket by the inner source address. All packets of a
//     pod are in one socket, so their order stays, and a flood fills only that socket.
//  2. Receive reads from the sockets in turn. So a pod's packet waits for at most one read from
//     each of the other sockets.
//  3. The first socket is bound without SO_REUSEPORT. So opening the port fails if another
//     program receives there, including another switch.
//  4. The sockets are handed over together. The kernel keeps group and program while one of them
//     is open.
//
// Pods whose addresses give the same number share a socket. An Egress' address has one socket. So
// has GRE, because the kernel gives a packet to all raw sockets.

// numReceivers is how many sockets the Node's own address has.
const numReceivers = 16

// fillGroup opens the missing sockets of the Node's own address. It returns no error, because the
// port also works with fewer sockets; then more pods share one. For example, another user's
// switch may have left sockets that no other can join.
func (p *Port) fillGroup() {
	if p.config.Kind.Port() == 0 {
		return
	}
	n := 0
	for _, r := range p.rxs {
		if r.at == p.config.Local {
			_ = share(r.fd)
			n++
		}
	}
	for ; n < numReceivers; n++ {
		fd, err := openReceiver(&p.config, p.config.Local, true)
		if err != nil || p.addReceiver(fd, p.config.Local) != nil {
			break
		}
	}
	prog := choosing(p.config.Kind, uint32(n))
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	// Without the program the kernel chooses by the outer addresses and ports.
	_ = unix.SetsockoptSockFprog(p.rxs[0].fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &fprog)
}

// share lets other sockets of this user be bound to the same address and port.
func share(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }

// Offsets of the inner frame's parts in a datagram, without Geneve options.
const (
	innerFrame   = tunnel.HeaderLen
	innerType    = innerFrame + 12
	innerSource4 = innerFrame + packet.EthernetLen + 12
	innerSource6 = innerFrame + packet.EthernetLen + 20 // its last four bytes
)

// choosing is a BPF program that computes the socket's number, below n, for a datagram. The last
// four bytes of the inner source decide; neighbouring pods and neighbouring ranges get different
// numbers. Datagrams that are not IP, or too short, go to socket 0.
func choosing(kind tunnel.Kind, n uint32) []unix.SockFilter {
	return append(skipOptions(kind),
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: innerType},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: packet.EtherTypeIPv4, Jf: 2},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND, K: innerSource4},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 3},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: packet.EtherTypeIPv6, Jt: 1},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND, K: innerSource6},
		unix.SockFilter{Code: unix.BPF_MISC | unix.BPF_TAX},
		unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: 8},
		unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_ADD | unix.BPF_X},
		unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: n},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_A},
	)
}

// skipOptions sets the index register to the length of the Geneve options.
func skipOptions(kind tunnel.Kind) []unix.SockFilter {
	if kind != tunnel.KindGeneve {
		return []unix.SockFilter{{Code: unix.BPF_LDX | unix.BPF_W | unix.BPF_IMM}}
	}
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x3f},
		{Code: unix.BPF_ALU | unix.BPF_LSH | unix.BPF_K, K: 2},
		{Code: unix.BPF_MISC | unix.BPF_TAX},
	}
}

// readySockets is the last answer of epoll_wait(2): sockets that had datagrams.
type readySockets struct {
	events [numReceivers]unix.EpollEvent
	at, n  int // the next one, and how many there are
}

// nextReady is the socket to read next; nil if no datagram waits. Each socket in an answer of
// epoll_wait has one turn. The kernel moves a reported socket to the end of its list. So sockets
// for which an answer had no room come first in the next one.
func (p *Port) nextReady() *receiver {
	q := &p.ready
	if q.at == q.n {
		q.at, q.n = 0, 0
		if n, err := unix.EpollWait(p.epoll, q.events[:], 0); err == nil {
			q.n = n
		}
	}
	for q.at < q.n {
		fd := int(q.events[q.at].Fd)
		q.at++
		for _, r := range p.rxs {
			if r.fd == fd {
				return r
			}
		}
	}
	return nil
}
