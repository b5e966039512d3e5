package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tunnel"
)

// A pod that sends faster than the other Node's worker walks fills a socket's buffer
// there. In one socket the kernel then drops the datagrams of all pods alike. So the
// Node's own address has a group of sockets (SO_REUSEPORT, socket(7)):
//
//  1. A program in the kernel chooses the socket by the inner source address. All that
//     a pod sends is in one socket, so its order stays, and a flood fills that socket
//     only.
//  2. Receive reads from the sockets in turns. So a pod's packet waits for at most one
//     read from each of the other sockets.
//  3. The first socket is bound without SO_REUSEPORT. So opening the port fails when
//     another program receives there, also another switch.
//  4. The sockets are handed over together. The kernel keeps group and program as long
//     as one of them is open.
//
// Pods whose addresses give the same number share a socket. An Egress' address has one
// socket, and so has GRE, because the kernel gives a packet to all raw sockets.

// numReceivers is how many sockets the Node's own address has.
const numReceivers = 16

// fillGroup opens what is missing of the sockets of the Node's own address. With fewer
// sockets the port works as well, and more pods share one. So it has no error: another
// user's switch, for example, left sockets that nobody can join.
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

// Where a datagram has the parts of its inner frame, without options of Geneve.
const (
	innerFrame   = tunnel.HeaderLen
	innerType    = innerFrame + 12
	innerSource4 = innerFrame + packet.EthernetLen + 12
	innerSource6 = innerFrame + packet.EthernetLen + 20 // its last four bytes
)

// choosing is a program of BPF that gives the number of the socket, of n, for the
// datagram. The last four bytes of the inner source decide; addresses of neighbouring
// pods and of neighbouring ranges give different numbers. What is not IP, or too short,
// is for socket 0.
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

// skipOptions sets the index register to the length of the options of Geneve.
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

// nextReady is the socket whose turn it is to be read; nil when no datagram waits. Each
// socket in an answer has one turn. The kernel puts a socket that it reports at the end
// of its list. So sockets for which an answer has no room come first in the next.
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
