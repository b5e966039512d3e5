package host

import (
	"context"
	"errors"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// watched are the kernel's notices of changes by other programs: links, addresses, routes,
// and forwarding sysctls. Neighbours are left out, because a busy Node has too many.
// nftables is left out, because it reports each element of other programs' sets; its
// generation is polled (seenTable).
var watched = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_NETCONF,
	unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_NETCONF,
}

// Watch reports changes to the Node's links, addresses or routes, this process's included.
// One notice stands for all changes since the last one was received. When ctx ends, the
// channel is closed.
func Watch(ctx context.Context) (<-chan struct{}, error) { return watch(ctx, watched...) }

// WatchLinks is Watch for links alone.
func WatchLinks(ctx context.Context) (<-chan struct{}, error) {
	return watch(ctx, unix.RTNLGRP_LINK)
}

// watch reports changes in the kernel's multicast groups.
func watch(ctx context.Context, groups ...uint) (<-chan struct{}, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.Close)
	changes := make(chan struct{}, 1)
	go runNotices(ctx, s, changes)
	return changes, nil
}

// runNotices forwards notices. If the kernel lost some (ENOBUFS), that is a notice, too.
func runNotices(ctx context.Context, s *nl.NetlinkSocket, changes chan<- struct{}) {
	defer close(changes)
	for {
		if _, _, err := s.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case changes <- struct{}{}:
		default:
		}
	}
}
