# Debian's etcd and its client, with their libraries and nothing else, for docker/cluster.compose.yaml:
#   docker build -t softlookup-etcd -f docker/etcd.Dockerfile .
FROM debian:bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils etcd-client etcd-server
COPY docker/collect-root /src/docker/
RUN /src/docker/collect-root /root-out /usr/bin/etcd /usr/bin/etcdctl \
 && for package in etcd-client etcd-server; do \
      dpkg-query -s "$package" >"/root-out/var/lib/dpkg/status.d/$package" || exit 1; \
      cp -L --parents "/usr/share/doc/$package/copyright" /root-out || exit 1; done \
 && install -d /root-empty

FROM scratch
COPY --from=build /root-out/ /
# A new named volume takes its owner from here.
COPY --from=build --chown=65532:65532 /root-empty/ /data/
VOLUME /data
EXPOSE 2379 2380
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/etcd"]
