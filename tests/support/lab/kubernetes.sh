#!/bin/sh
# The first process of a Kubernetes cluster for tests; ends with the last process that uses it.
#   kubernetes.sh FOLDER USERS PROGRAMS
# Runs as root in namespaces of its own; see engine.sh. PROGRAMS is a folder with kube-apiserver,
# kube-scheduler and kubelet. A daemon that ends is started again, unless FOLDER/NAME.down exists.
set -u
folder=$1 programs=$3 address=10.95.0.1
exec 9< "$2"
mount --make-rprivate / && mount -t proc proc /proc || exit 1
hostname lab
ip link set lo up
ip link add lab0 type bridge && ip addr add "$address/24" dev lab0 && ip link set lab0 up || exit 1

# The kubelet would set these for the whole machine; it reads what it wants, and leaves them alone.
settings='vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000'
for each in $settings; do
  own=$folder/sysctl/${each%=*}
  mkdir -p "${own%/*}"
  echo "${each#*=}" > "$own"
  mount --bind "$own" "/proc/sys/${each%=*}" || exit 1
done
mount -t tmpfs tmpfs /var/log

keep() {
  name=$1; shift
  while :; do
    while [ -e "$folder/$name.down" ]; do sleep 0.1; done
    "$@" >> "$folder/$name.log" 2>&1 < /dev/null &
    echo $! > "$folder/$name.pid"
    wait $!
    sleep 0.2
  done 9<&-
}

keep dockerd dockerd --data-root "$folder/data" --exec-root "$folder/exec" \
  --pidfile "$folder/docker.pid" -H "unix://$folder/docker.sock" --live-restore --bridge=lab0 \
  --iptables=false --ip6tables=false &
keep etcd etcd --data-dir "$folder/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
  --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 &
# A controller would take the taint from a new node again; there is none.
keep apiserver "$programs/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 \
  --advertise-address="$address" --cert-dir="$folder/certificates" --token-auth-file="$folder/tokens" \
  --authorization-mode=RBAC --disable-admission-plugins=TaintNodesByCondition \
  --feature-gates=BoundServiceAccountTokenVolume=true --service-cluster-ip-range=10.96.0.0/24 \
  --service-account-key-file="$folder/key" --service-account-signing-key-file="$folder/key" \
  --service-account-issuer=https://lab --api-audiences=https://lab \
  --kubelet-preferred-address-types=InternalIP &
keep scheduler "$programs/kube-scheduler" --kubeconfig="$folder/admin" --leader-elect=false --port=0 \
  --bind-address=127.0.0.1 --cert-dir="$folder/certificates" &
# Its requests to Docker fail until that answers, and then it ends.
until [ -S "$folder/docker.sock" ]; do sleep 0.05; done
keep kubelet "$programs/kubelet" --kubeconfig="$folder/admin" --hostname-override=node1 \
  --node-ip="$address" --node-labels=disk=fast --container-runtime=docker \
  --docker-endpoint="unix://$folder/docker.sock" --pod-infra-container-image=mngr-lab:pause \
  --cgroup-driver=cgroupfs --cgroups-per-qos=false --enforce-node-allocatable= --fail-swap-on=false \
  --oom-score-adj=0 --root-dir="$folder/kubelet" --cert-dir="$folder/kubelet/pki" \
  --experimental-dockershim-root-directory="$folder/dockershim" \
  --volume-plugin-dir="$folder/kubelet/plugins" --anonymous-auth=true \
  --authorization-mode=AlwaysAllow --make-iptables-util-chains=false --eviction-hard= \
  --image-gc-high-threshold=100 --resolv-conf= &
until flock -n -x 9; do sleep 0.2; done
