package store

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
)

// PodPort is the port that the CNI plugin made for a Pod of this Node. Its key
// is the Pod's, with KindPodPort. No snapshot holds it: the store puts it into
// the Pod, whose addresses it then gives, for a Pod's status has them later, if
// at all.
//
// A Pod may have more interfaces than its first. The port of each further one
// is named for POD@INTERFACE, and its twin is in the snapshot under that name: a
// Pod with all that the Pod says of itself, with port and addresses of its own.
// So what policies say of a Pod holds on all its ports. No Service has a twin as
// its endpoint.
type PodPort struct {
	cluster.Meta
	cluster.SwitchPort              // Pod is the Pod's name
	IPs                []netip.Addr // at most one per family
	// UID is that of the Pod the port was made for; empty: whichever has the name.
	UID string
}

// KindPodPort is the kind of a PodPort's key.
const KindPodPort cluster.Kind = "PodPort"

// NewPodPort makes the object of a port, as the source of that name says it.
func NewPodPort(source string, port cluster.SwitchPort, ips []netip.Addr, uid string) *PodPort {
	k := cluster.Key{Kind: KindPodPort, Namespace: port.Pod.Namespace, Name: port.Pod.Name}
	return &PodPort{Meta: cluster.Meta{Key: k, Source: cluster.Source{File: source}}, SwitchPort: port, IPs: ips, UID: uid}
}

// podOf is the key of a port's Pod, or of its twin.
func podOf(k cluster.Key) cluster.Key {
	return cluster.Key{Kind: cluster.KindPod, Namespace: k.Namespace, Name: k.Name}
}

// portOfPod is the key of a Pod's port.
func portOfPod(k cluster.Key) cluster.Key {
	return cluster.Key{Kind: KindPodPort, Namespace: k.Namespace, Name: k.Name}
}

// twinMark stands in no name of a Pod.
const twinMark = "@"

// TwinName names a Pod's further interface where a Pod's name stands.
func TwinName(pod, ifname string) string { return pod + twinMark + ifname }

// origin is the key of the Pod that a twin is one of; false for no twin's.
func origin(k cluster.Key) (cluster.Key, bool) {
	name, _, twin := strings.Cut(k.Name, twinMark)
	return cluster.Key{Kind: cluster.KindPod, Namespace: k.Namespace, Name: name}, twin && k.Kind == cluster.KindPod
}

// noteTwin keeps the twins of each Pod.
func (s *Store) noteTwin(k cluster.Key, there bool) {
	pod, twin := origin(podOf(k))
	if !twin || k.Kind != KindPodPort {
		return
	}
	s.twins[pod] = slices.DeleteFunc(s.twins[pod], func(o cluster.Key) bool { return o == podOf(k) })
	if there {
		s.twins[pod] = append(s.twins[pod], podOf(k))
	} else if len(s.twins[pod]) == 0 {
		delete(s.twins, pod)
	}
}

// twin is the twin of a key: its Pod with the port that is the key's; nil when
// there is no such Pod or port.
func (s *Store) twin(k, podKey cluster.Key) cluster.Object {
	if len(s.claims[portOfPod(k)]) == 0 || len(s.claims[podKey]) == 0 {
		return nil
	}
	pod, ok := s.claims[podKey][0].(*cluster.Pod)
	if !ok {
		return nil
	}
	twin := *pod
	twin.Key = k
	attached := s.attach(&twin)
	if attached == &twin { // the port is not this Pod's
		return nil
	}
	return attached
}

// attach is a Pod with its port, if there is one that was made for it: one of
// the same name that came after another has another UID.
func (s *Store) attach(pod *cluster.Pod) *cluster.Pod {
	k := portOfPod(pod.Key)
	if len(s.claims[k]) == 0 {
		return pod
	}
	port, ok := s.claims[k][0].(*PodPort)
	if !ok || pod.HostNetwork || port.UID != "" && pod.UID != "" && port.UID != pod.UID {
		return pod
	}
	attached := *pod
	attached.SwitchPort = port.SwitchPort
	attached.IPs = slices.Clone(port.IPs)
	return &attached
}
