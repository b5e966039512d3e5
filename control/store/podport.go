package store

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
)

// PodPort is the port that the CNI plugin made for a Pod of this Node. Its key is that of the
// Pod, with KindPodPort. No snapshot holds it. The store puts the port and its addresses into
// the Pod, because the Pod's status has the addresses later or never.
//
// A Pod may have more than one interface. The port of each further interface has the name
// POD@INTERFACE. For each, the snapshot has a twin of that name: a copy of the Pod with the
// port and addresses of that interface. Policies of the Pod thus hold on all its ports. Services
// have no twins as endpoints.
type PodPort struct {
	cluster.Meta
	cluster.SwitchPort              // Pod is the Pod's name
	IPs                []netip.Addr // at most one per family
	// UID is that of the Pod that the port was made for; empty: any Pod of the name.
	UID string
}

// KindPodPort is the kind of a PodPort's key.
const KindPodPort cluster.Kind = "PodPort"

// NewPodPort makes the PodPort that a source gives.
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

// twinMark cannot be in the name of a Pod.
const twinMark = "@"

// TwinName is the name of a twin, for one further interface of a Pod.
func TwinName(pod, ifname string) string { return pod + twinMark + ifname }

// origin is the key of a twin's Pod. It returns false if k is not the key of a twin.
func origin(k cluster.Key) (cluster.Key, bool) {
	name, _, twin := strings.Cut(k.Name, twinMark)
	return cluster.Key{Kind: cluster.KindPod, Namespace: k.Namespace, Name: name}, twin && k.Kind == cluster.KindPod
}

// noteTwin records the twins of each Pod.
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

// twin makes the twin with a key: its Pod, with the port of the key. It returns nil if the Pod
// or the port does not exist.
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
	if attached == &twin { // the port belongs to another Pod
		return nil
	}
	return attached
}

// attach returns a Pod with its port. It returns the Pod itself if the port is missing or has
// another UID: then it was made for an earlier Pod of that name.
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
