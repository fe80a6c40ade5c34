# The target `package`: softlookup_VERSION_ARCHITECTURE.deb in the build directory, with the server,
# the tool, a systemd unit and the documents. It builds these two programs and nothing else, which is
# why CPack's own target of that name, behind `all`, is not used.
set(package_dir "${PROJECT_SOURCE_DIR}/server/package")
set(package_files COMPONENT package_files EXCLUDE_FROM_ALL)
install(FILES "${package_dir}/softlookup.service" DESTINATION /lib/systemd/system ${package_files})
install(FILES "${package_dir}/softlookup.conf" DESTINATION /etc/softlookup ${package_files})
install(FILES "${package_dir}/softlookup.logrotate" DESTINATION /etc/logrotate.d
  RENAME softlookup ${package_files})
install(FILES "${package_dir}/softlookup.1" DESTINATION /usr/share/man/man1 ${package_files})
install(FILES "${package_dir}/softlookup-server.8" DESTINATION /usr/share/man/man8 ${package_files})
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  "${PROJECT_SOURCE_DIR}/SECURITY.md"
  DESTINATION /usr/share/doc/softlookup ${package_files})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION /usr/share/doc/softlookup ${package_files}
  FILES_MATCHING PATTERN "*.md" PATTERN decisions EXCLUDE PATTERN images EXCLUDE)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docker/prometheus" "${PROJECT_SOURCE_DIR}/docker/grafana"
  DESTINATION /usr/share/doc/softlookup/examples ${package_files})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/proto/softlookup" "${PROJECT_SOURCE_DIR}/proto/google"
  DESTINATION /usr/share/softlookup/proto ${package_files} FILES_MATCHING PATTERN "*.proto")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME softlookup)
set(CPACK_PACKAGE_CONTACT "softlookup operators")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL programs package_files)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
# Files of the package are as readable as anyone's, whatever the umask here.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_NAME softlookup)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, init-system-helpers")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${package_dir}/conffiles" "${package_dir}/postinst"
  "${package_dir}/prerm" "${package_dir}/postrm")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "networked soft lookup: a dictionary that always answers")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Keeps stores of vector keys and values. A query is scored against every key, a
softmax turns the scores into weights, and the weighted sum of the values comes
back, over gRPC. This package has the server, as a systemd service, and the
command-line tool.")
set(CPACK_OUTPUT_CONFIG_FILE "${PROJECT_BINARY_DIR}/package/CPackConfig.cmake")
set(CPACK_SOURCE_OUTPUT_CONFIG_FILE "${PROJECT_BINARY_DIR}/package/CPackSourceConfig.cmake")
include(CPack)

add_custom_target(package
  COMMAND "${CMAKE_CPACK_COMMAND}" --config "${CPACK_OUTPUT_CONFIG_FILE}"
  DEPENDS softlookup-server softlookup_tool
  WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
  COMMENT "Packing the .deb"
  USES_TERMINAL VERBATIM)
